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
    "loops": {"_native", "content", "errors", "opening", "options", "signatures", "terminal_text"},
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
    "testing": {"membox_queue", "_native", "aio", "errors", "loops", "options", "queue"},
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

INTERNAL: dict[str, set[str]] = {
    "aio": {
        *("_await_end", "_database", "_ended", "_find", "_known_lost", "_leave", "_plan_claim"),
        *("_release_many", "_seconds", "_settled", "_watcher"),
        *("_add_step", "_find_step", "_release_abandoned", "_NamedQueue"),
    },
    # Of aiosqlite, which has no public way to run a function on its own thread.
    "connections": {"_conn", "_execute"},
    "loops": {
        *("_begin_loop", "_encoded", "_fail_batch", "_fit", "_promised", "_release_abandoned", "_settled"),
        "_uncommitted",
    },
    "membox": {
        *("_begin_loop", "_is_worker_younger_than", "_refresh_process_lease", "_release_process_lease"),
        *("_share_leases_with_membox", "_take_over_worker_lease"),
    },
    "opening": {"_set_shape"},
    "options": {"_WithId"},
    "queue": {"_uncovered"},
    "testing": {"_next_due"},
    "workers": {"_announce_worker", "_confirm_worker", "_withdraw_worker"},
}
"""What a part uses of the native classes that their users do not see. Everything else with an underscore stays in its
part; what others need of it is a function."""


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


def private(name):
    return name.startswith("_") and not name.endswith("__")


def made_in(trees):
    """The names that a part defines or assigns, as variables or as attributes of an object of its own."""
    for node in itertools.chain.from_iterable(ast.walk(tree) for tree in trees):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def crossings():
    """Each private name that a part uses and does not make itself: the part, the name, and where."""
    trees = {}
    for part, path in parts():
        trees.setdefault(part, {})[path.relative_to(PACKAGE)] = ast.parse(path.read_text(encoding="utf-8"))
    for part, files in trees.items():
        own = set(made_in(files.values()))
        for path, tree in files.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own:
                    yield part, node.attr, f"{path}:{node.lineno}: {ast.unparse(node)}"
            for module, _ in imports(tree):
                name = module.rpartition(".")[2]
                if private(name) and name != "_native" and part_of(module) != part:
                    yield part, name, f"{path} imports {module}"


def members_of_the_stub():
    """The members of the native classes, each with its words."""
    for node in ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8")).body:
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef):
                yield member.name, ast.get_docstring(member)


def test_what_is_private_is_used_in_its_own_part():
    found = list(crossings())
    assert [where for part, name, where in found if name not in INTERNAL.get(part, ())] == []
    assert {(part, name) for part, names in INTERNAL.items() for name in names} == {
        (part, name) for part, name, _ in found
    }, "INTERNAL names what is not used"


def test_what_the_parts_share_of_the_native_classes_has_its_words_in_the_stub():
    words = dict(members_of_the_stub())
    # Protocols of the stub, and members of another library.
    foreign = {"_NamedQueue", "_WithId"} | INTERNAL["connections"]
    shared = set().union(*INTERNAL.values()) - foreign
    assert {name for name in shared if not words.get(name)} == set()


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


def test_a_long_file_says_why():
    """In its first lines; above 500 lines in Rust, 400 in Python."""
    for path in itertools.chain(CORE.rglob("*.rs"), PACKAGE.rglob("*.py"), PACKAGE.rglob("*.pyi")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > (500 if path.suffix == ".rs" else 400):
            assert re.search(r"longer than most|Above 400 lines", "\n".join(lines[:15])), path


def test_every_statement_is_used():
    named = {name for _, _, text in core_files() for name in re.findall(r'statement!\(\s*"(\w+)"', text)}
    assert {path.stem for path in (CORE / "sqlite" / "sql").glob("*.sql")} - named == set()
