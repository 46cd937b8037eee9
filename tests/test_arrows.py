"""The direction of calls between the parts of the package: an arrow that is not in the tables below fails."""

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "membox_queue"
CORE = ROOT / "src"

ARROWS: dict[str, set[str]] = {
    # The bottom: imports nothing of the package.
    "errors": set(),
    "terminal_text": set(),
    "options": set(),
    "signatures": set(),
    "document": {"errors"},
    "removal": {"_native", "errors"},
    "alembic": set(),
    "content": {"errors"},
    "connections": {"_native"},
    "wire": {"_native", "errors", "terminal_text"},
    "opening": {"_native", "content", "errors"},
    # Loops know no queue class, workers no front end.
    "loops": {"_native", "content", "errors", "options", "signatures", "terminal_text"},
    "workers": {"_native", "content", "errors", "loops", "opening", "options", "signatures", "wire"},
    "queue": {"_native", "connections", "content", "document", "loops", "opening", "options", "signatures", "workers"},
    "aio": {"_native", "connections", "content", "errors", "loops", "opening", "options", "queue", "signatures"},
    # The front ends: never `_native`, but for the clock and the faults of tests, which are native.
    "cli": {
        *("membox_queue", "aio", "demo", "document", "errors", "loops", "queue", "removal"),
        *("terminal_text", "wire", "workers"),
    },
    "demo": {"membox_queue"},
    "membox": {"errors", "loops", "queue", "workers"},
    "testing": {"membox_queue", "_native", "errors"},
    "__main__": {"cli"},
    # Public names are found in a table, by text.
    "membox_queue": set(),
}
"""For each part of the package, what it imports when it runs; `membox_queue` stands for the public names."""

TYPES: dict[str, set[str]] = {
    "membox_queue": {"_native", "aio", "errors", "loops", "queue", "removal", "workers"},
    "loops": {"aio", "queue"},
    "membox": {"_native"},
    "options": {"_native", "loops"},
    "wire": {"queue"},
}
"""What a part names beyond that in annotations only."""


BASE = {"clock", "error", "process", "random", "sync"}
"""What every module of the core but `model` and `rules` may use."""

CORE_ARROWS: dict[str, set[str]] = {
    # The nouns and the rules: pure, but for the error type.
    "model": {"error", "rules"},
    "rules": {"error", "model"},
    "error": set(),
    "sync": set(),
    "process": {"error"},
    "clock": {"model"},
    "random": {"error", "process"},
    "faults": {"error", "model", "sync"},
    # The boundary. Its list of engines is in one file.
    "store": {"clock", "error", "model", "rules", "wake"},
    "wake": {"error", "store", "sync"},
    "heartbeat": {"clock", "error", "model", "process", "store", "sync"},
    # An engine names nobody above it.
    "sqlite": {"clock", "error", "model", "process", "random", "rules", "store", "sync", "wake"},
    # The verbs know no engine.
    "queue": BASE | {"faults", "heartbeat", "model", "rules", "store", "wake"},
    # It alone names pyo3.
    "python": {"clock", "error", "faults", "heartbeat", "model", "process", "queue", "rules", "store", "sync"},
}
"""For each module of the Rust core, what it uses."""

ENGINES = {"store/address.rs": {"sqlite"}}
"""The one file that knows which engines there are."""


def part_of(module):
    """The first folder or file below the package that a dotted name leads to."""
    _, _, rest = module.partition(".")
    return rest.partition(".")[0] or "membox_queue"


def parts():
    """The files of each folder or single module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        yield ("membox_queue" if first == "__init__" else first), path


def imports(tree):
    """All imports of a file with whether they are for annotations only, those inside functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from ((name, True) for name, _ in imports(ast.Module(node.body, [])))
            yield from imports(ast.Module(node.orelse, []))
        elif isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # `from membox_queue import errors` is an arrow to the module, `import Queue` one to the public names.
            yield from ((f"{node.module}.{alias.name}", False) for alias in node.names)
        else:
            yield from imports(node)


def arrows():
    """Each arrow between two parts: from, to, whether for annotations only, and the file."""
    modules = {part for part, _ in parts()} | {"_native"}
    for part, path in parts():
        for module, is_type in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if module.partition(".")[0] != "membox_queue":
                continue
            target = part_of(module)
            target = target if target in modules else "membox_queue"
            if target != part:
                yield part, target, is_type, path.relative_to(PACKAGE)


@pytest.mark.parametrize("part", sorted({part for part, _ in parts()}))
def test_a_part_of_the_package_imports_only_what_lies_below_it(part):
    assert part in ARROWS, f"{part} is new: say in ARROWS what it may import"
    wrong = {
        f"{path} imports {target}{' for its types' if is_type else ''}"
        for source, target, is_type, path in arrows()
        if source == part and target not in (ARROWS[part] | TYPES.get(part, set()) if is_type else ARROWS[part])
    }
    assert wrong == set()


def test_every_arrow_of_the_tables_is_used():
    drawn = {(source, target) for source, target, _, _ in arrows()}
    allowed = {
        (source, target) for source, targets in itertools.chain(ARROWS.items(), TYPES.items()) for target in targets
    }
    assert allowed - drawn == set()


def test_the_arrows_make_no_circle():
    left = {part: set(targets) for part, targets in ARROWS.items()}
    while ends := {part for part, targets in left.items() if not targets & left.keys()}:
        left = {part: targets for part, targets in left.items() if part not in ends}
    assert left == {}


def test_the_json_forms_need_no_library_of_the_command_line():
    files = [path for part, path in parts() if part == "wire"]
    named = {module.partition(".")[0] for path in files for module, _ in imports(ast.parse(path.read_text("utf-8")))}
    assert not named & {"typer", "rich"}


def core_files():
    """Each file of the core but `lib.rs`, with the module it belongs to, less its own tests."""
    for path in sorted(CORE.rglob("*.rs")):
        name = path.relative_to(CORE)
        if str(name) != "lib.rs" and name.stem not in ("tests", "properties"):
            yield (
                name.parts[0].removesuffix(".rs"),
                name,
                path.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod ")[0],
            )


def core_arrows():
    """Each arrow between two modules of the core: from, to, and the file."""
    modules = {module for module, _, _ in core_files()}
    for module, name, text in core_files():
        for target in re.findall(r"\bcrate::(\w+)", text):
            if target in modules and target != module and target not in ENGINES.get(name.as_posix(), set()):
                yield module, target, name


def test_every_module_of_the_core_is_in_the_table():
    assert {module for module, _, _ in core_files()} == set(CORE_ARROWS)


@pytest.mark.parametrize("module", CORE_ARROWS)
def test_a_module_of_the_core_uses_only_what_lies_below_it(module):
    drawn = list(core_arrows())
    assert len(drawn) > 100, "the files were not read"
    wrong = {f"{name} uses {target}" for source, target, name in drawn if source == module}
    wrong -= {f"{name} uses {target}" for source, target, name in drawn if target in CORE_ARROWS[source]}
    assert wrong == set()


def test_every_arrow_of_the_core_is_used():
    drawn = {(source, target) for source, target, _ in core_arrows()}
    allowed = {(source, target) for source, targets in CORE_ARROWS.items() for target in targets}
    assert allowed - drawn == set()


def test_only_the_binding_names_pyo3_and_only_the_engine_names_rusqlite():
    for module, name, text in core_files():
        assert module == "python" or "pyo3" not in text, name
        assert module in ("sqlite", "error") or "rusqlite" not in text, name
