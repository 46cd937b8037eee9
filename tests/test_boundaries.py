"""The rules of the boundaries that can be read off the text of the core and of the package, beside the arrows."""

import re

from test_arrows import PACKAGE, core_files

PURE = {"arc_swap", "base64", "croner", "jiff", "serde", "serde_json", "xxhash_rust"}
"""The libraries of the nouns and the rules: all compute, none reads a file or a clock."""


def lines_with(pattern, module):
    """The files of a module of the core in which a pattern is found, with the number of lines."""
    found = {name.as_posix(): len(re.findall(pattern, text)) for part, name, text in core_files() if part == module}
    return {name: count for name, count in found.items() if count}


def test_nouns_and_rules_use_only_what_computes():
    for module, name, text in core_files():
        if module in ("model", "rules"):
            used = set(re.findall(r"^use (\w+)", text, flags=re.MULTILINE)) - {"super", "crate", "std", "self"}
            assert used <= PURE, name
            assert not re.search(r"\bstd::(env|fs|io|net|process|thread)\b|Instant::now|SystemTime", text), name


def test_the_boundary_and_the_verbs_touch_no_file():
    for module, name, text in core_files():
        if module in ("queue", "store", "heartbeat"):
            assert not re.search(r"\bstd::(env|fs|io|net)\b|\blibc\b", text), name


def test_there_is_one_way_into_a_transaction():
    moves = r"store\.(?:enqueue|advance|write)\(|\.transact\("
    assert lines_with(moves, "queue") == lines_with(r"\.move_store\(", "queue")
    assert lines_with(r"store\.write\(|\.transact\(", "queue") == {"queue/run.rs": 1}
    assert lines_with(r"\bfaults::(?:before|after)\(", "queue") == {"queue/run.rs": 2}


def test_those_who_wait_are_woken_by_events_alone():
    """And by what is no commit: a queue that closes, a loop that stops or ends."""
    assert lines_with(r"wake_signal\(\)\.wake", "queue") == {"queue/mod.rs": 2}
    assert lines_with(r"\.wake_all\(\)", "queue") == {
        "queue/worker_loop/mod.rs": 2,
        "queue/worker_loop/step.rs": 1,
    }


def test_no_statement_is_written_in_python():
    statement = re.compile(r"""["'](?:SELECT|INSERT|UPDATE|DELETE|BEGIN|SAVEPOINT|CREATE|PRAGMA)\b""")
    for path in PACKAGE.rglob("*.py"):
        # The demo has tables of its own.
        assert path.stem == "demo" or not statement.search(path.read_text(encoding="utf-8")), path


def test_native_code_imports_nothing_of_the_package_but_its_errors():
    named = {name for _, _, text in core_files() for name in re.findall(r'import\("(membox_queue[\w.]*)"', text)}
    assert named - {"membox_queue._native"} == {"membox_queue.errors"}


def test_the_gil_is_released_in_one_place():
    assert lines_with(r"\.detach\(|allow_threads", "python").keys() == {"python/interpreter_exit.rs"}


SHARED_NAMES = {
    "State",  # what a lock guards, private to its file
    "Step",  # of a slot; of a verb on the caller's connection, exported as EnlistmentStep
    "Running",  # the statement of a verb on the caller's connection, private to its file
    "Outcome",  # of an advance; of a verb on the caller's connection, exported as EnlistmentOutcome
}


def test_no_two_types_of_the_core_have_one_name():
    """The binding has the names of what it shows, and another system has those of Linux."""
    places = {}
    for module, name, text in core_files():
        if module != "python" and "elsewhere" not in name.stem:
            for found in re.findall(
                r"^(?:pub(?:\(\w+\))? )?(?:struct|enum|trait|type) (\w+)", text, flags=re.MULTILINE
            ):
                places.setdefault(found, set()).add(name.as_posix())
    assert {found: files for found, files in places.items() if len(files) > 1 and found not in SHARED_NAMES} == {}
