# One word for each task; `make` lists them.
.PHONY: help setup build test lint proof bench docs ci
.DEFAULT_GOAL := help

python := .venv/bin/python

help: ## List the tasks
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## Make the virtual environment and install everything for development
	python3 -m venv .venv
	.venv/bin/pip install --quiet maturin '.[test]' -r .ci/requirements.txt
	.venv/bin/maturin develop --release

build: ## Build the native module after a change in src/
	.venv/bin/maturin develop --release

test: ## Run the default suite and the core's own tests
	$(python) -m pytest -n 2
	cargo test --locked
	cargo test --locked --manifest-path tests/model/Cargo.toml --target-dir target/model

lint: ## Check formatting, lints and types, and that the reference is current
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --features python -- -D warnings
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy -p membox_queue
	$(python) -m mypy.stubtest membox_queue._native
	$(python) docs/reference.py --check
	$(python) -m pytest tests/test_docs_types.py

proof: ## Run the long forms of the proofs
	$(python) -m pytest -m proof
	cd tests && ../$(python) -m proof.seeded_bugs

bench: ## Measure the verbs, the binding, and other libraries beside us
	cargo bench --bench verbs
	$(python) benches/binding.py
	.venv/bin/pip install --quiet '.[bench]'
	$(python) benches/compare.py --quick

docs: ## Make the reference from the stub, and the pictures from a real terminal
	$(python) docs/reference.py
	$(python) docs/pictures.py

ci: ## Everything that must pass, in a copy of this directory
	.ci/run
