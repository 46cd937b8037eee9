"""Makes reference.md from the stub and the Python classes: `python docs/reference.py`; `--check` says if it is old."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "python" / "membox_queue"

INTRODUCTION = """\
# Reference

Made from [`_native.pyi`](../python/membox_queue/_native.pyi) and the Python classes by `python docs/reference.py`; your
editor shows the same words.
"""

VERBS = {
    "Enqueueing": ("enqueue", "enqueue_many", "enqueue_file"),
    "Claiming": ("claim", "claim_many", "claim_group"),
    "Ending a claim": ("mark_done", "mark_done_many", "mark_failed", "release", "extend"),
    "Loops and workers": ("drain", "work", "stop", "spawn_worker", "handler", "worker"),
    "Looking": (
        "get",
        "items",
        "counts",
        "pending",
        "failures",
        "coverage_note",
        "history",
        "stats",
        "workers",
        "group_counts",
        "running",
    ),
    "Waiting": ("wait",),
    "Bringing back": ("retry_failed", "retry", "retry_all", "replay", "run_now", "run_later"),
    "Cancelling and removing": ("cancel", "delete", "purge", "prune"),
    "Pausing": ("pause", "resume", "paused"),
    "Schedules": ("schedule", "schedules", "unschedule"),
    "Leases and locks": (
        "acquire_worker_lease",
        "refresh_worker_lease",
        "release_worker_lease",
        "worker_is_alive",
        "lock",
    ),
    "The file": (
        *("configure", "options", "path", "name", "queues", "type"),
        *("compact", "tend", "backup", "check", "close", "closed"),
    ),
}
"""What belongs together; a verb that stands nowhere here comes under More."""

FIRST = ("Queue", "Item", "NewItem", "AsyncQueue", "AsyncItem", "Worker", "DrainReport", "LoopEvent", "Retry", "Rate")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """The definitions of one file, by name."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.docstring = ast.get_docstring(self.tree) or ""
        self.definitions: dict[str, ast.stmt] = {}
        self.notes: dict[str, str] = {}
        for statement, following in zip(self.tree.body, [*self.tree.body[1:], None], strict=True):
            if isinstance(statement, ast.ClassDef | Function):
                self.definitions[statement.name] = statement
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self.definitions[statement.target.id] = statement
                self.notes[statement.target.id] = text_of(following)


def text_of(statement: ast.stmt | None) -> str:
    """The string that stands by itself behind a constant and explains it."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


def public_names() -> dict[str, Module]:
    """What `from membox_queue import …` gives, and the module that defines it."""
    package = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    modules: dict[str, Module] = {}
    found: dict[str, Module] = {}
    wanted: list[str] = []
    for node in ast.walk(package):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            wanted = ast.literal_eval(node.value)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("membox_queue."):
            name = node.module.removeprefix("membox_queue.").replace(".", "/")
            path = PACKAGE / f"{name}.py"
            module = modules.setdefault(name, Module(path if path.exists() else PACKAGE / f"{name}.pyi"))
            found.update({alias.name: module for alias in node.names})
    return {name: found[name] for name in wanted if name in found}


def members(definition: ast.ClassDef) -> dict[str, list[Function]]:
    """The functions of a class that users call, overloads together."""
    found: dict[str, list[Function]] = {}
    for node in definition.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            found.setdefault(node.name, []).append(node)
    return found


def constructor(definition: ast.ClassDef) -> Function | None:
    """How a class is called."""
    for node in definition.body:
        if isinstance(node, Function) and node.name in ("__new__", "__init__"):
            return node
    return None


def is_property(function: Function) -> bool:
    """Whether it is read without being called."""
    return any(ast.unparse(decorator).endswith("property") for decorator in function.decorator_list)


def is_overload(function: Function) -> bool:
    """Whether it only tells type checkers of one way to call what is defined after it."""
    return any(ast.unparse(decorator).endswith("overload") for decorator in function.decorator_list)


def plain(annotation: ast.expr | None) -> str:
    """A type as people say it."""
    text = "" if annotation is None else ast.unparse(annotation)
    text = re.sub(r"\b_native\.|\b_(?=Seconds|Status|Stats|T\b|T_co\b)|(?<=_T)_co\b", "", text)
    return re.sub(r"'([A-Z]\w*)'", r"\1", text).replace("'", '"')


def signature(name: str, function: Function) -> str:
    """The call, on one line if it fits."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    parts = [argument_of(*pair) for pair in zip(positional, defaults, strict=True)]
    if positional and positional[0].arg in ("self", "cls"):
        parts = parts[1:]
    if arguments.vararg:
        parts.append(f"*{argument_of(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [argument_of(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        parts += options_of_plan(function) or [f"**{argument_of(arguments.kwarg, None)}"]
    prefix = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    returns = plain(function.returns)
    result = "" if returns in ("", "None", "Self") else f" -> {returns}"
    line = f"{prefix}{name}({', '.join(parts)}){result}"
    if len(line) <= 100:
        return line
    return f"{prefix}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def options_of_plan(function: Function) -> list[str]:
    """The options of a loop that a function shows in the place of `**plan`."""
    shown = [ast.unparse(decorator) for decorator in function.decorator_list]
    wanted = next((text[6:].split(",")[0] for text in shown if text.endswith("lambda: Plan)")), None)
    if wanted is None:
        return []
    kinds = Module(PACKAGE / "options.py").definitions
    names: set[str] = set()
    while isinstance(kind := kinds.get(wanted), ast.ClassDef):
        names |= {ast.unparse(node.target) for node in kind.body if isinstance(node, ast.AnnAssign)}
        wanted = ast.unparse(kind.bases[0])
    module = Module(PACKAGE / "loops" / "plan.py")
    constants = {ast.unparse(node.targets[0]): node.value for node in module.tree.body if isinstance(node, ast.Assign)}
    plan = module.definitions["Plan"]
    assert isinstance(plan, ast.ClassDef)
    own = {argument.arg for argument in function.args.kwonlyargs}
    return [
        f"{name}: {plain(node.annotation)} = {plain(constants.get(plain(node.value), node.value))}"
        for node in plan.body
        if isinstance(node, ast.AnnAssign) and (name := ast.unparse(node.target)) in names - own
    ]


def argument_of(argument: ast.arg, default: ast.expr | None) -> str:
    """One argument with its type and default."""
    text = argument.arg + (f": {plain(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return f"{text}{' = ' if argument.annotation else '='}{plain(default)}"


def code(text: str) -> str:
    """A block that shows a call; not one to run."""
    return f"```text\n{text}\n```\n"


def documented(title: str, called: str, functions: list[Function]) -> str:
    """A verb: its call and what it promises."""
    words = next(filter(None, map(ast.get_docstring, functions)), "")
    functions = [function for function in functions if not is_overload(function)] or functions
    calls = "\n".join(
        f"{called}: {plain(function.returns)}" if is_property(function) else signature(called, function)
        for function in functions
    )
    return f"### {title}\n\n{code(calls)}\n{words}\n" if words else f"### {title}\n\n{code(calls)}"


def properties(functions: dict[str, list[Function]]) -> str:
    """What can be read, as a table."""
    rows = [
        (name, plain(function.returns), " ".join((ast.get_docstring(function) or "").split()))
        for name, (function, *_) in functions.items()
        if is_property(function)
    ]
    return table(("attribute", "type", "meaning"), rows) if rows else ""


def fields(definition: ast.ClassDef) -> str:
    """The fields of a dataclass, as a table."""
    rows = [
        (ast.unparse(node.target), plain(node.annotation), f"`{plain(node.value)}`" if node.value else "")
        for node in definition.body
        if isinstance(node, ast.AnnAssign)
    ]
    return table(("field", "type", "default"), rows) if rows else ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table whose first two columns are code."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for first, second, *rest in rows:
        cells = [f"`{first}`", f"`{second}`".replace("|", r"\|"), *(cell.replace("|", r"\|") for cell in rest)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verbs_of_queue(definitions: list[ast.ClassDef]) -> dict[str, dict[str, list[Function]]]:
    """All verbs of a queue, native and Python's, in groups."""
    everything: dict[str, list[Function]] = {}
    for definition in definitions:
        everything.update(members(definition))
    groups = {
        title: {name: everything.pop(name) for name in names if name in everything} for title, names in VERBS.items()
    }
    return {title: verbs for title, verbs in (groups | {"More": everything}).items() if verbs}


def queue_section(native: ast.ClassDef, python: ast.ClassDef) -> str:
    """The page's main part."""
    made = constructor(native)
    assert made is not None, "a queue is opened"
    parts = [f"## Queue\n\n{ast.get_docstring(python)}\n", documented("Opening a queue", "Queue", [made])]
    for title, verbs in verbs_of_queue([native, python]).items():
        parts.append(f"**{title}**\n")
        parts += [documented(f"Queue.{name}", name, functions) for name, functions in verbs.items()]
    return "\n".join(parts)


def class_section(name: str, definition: ast.ClassDef) -> str:
    """A class: how it is made, what it knows, what it does."""
    parts = [f"## {name}\n"]
    made = constructor(definition)
    if made is not None and name not in ("AsyncItem",):
        parts.append(code(signature(name, made)))
    parts.append(f"{ast.get_docstring(definition) or ''}\n")
    if made is not None and (words := ast.get_docstring(made)):
        parts.append(f"{words}\n")
    functions = members(definition)
    parts += filter(None, (fields(definition), properties(functions)))
    awaited = [ast.unparse(node.targets[0]) for node in definition.body if is_verb(node)]
    if awaited:
        links = ", ".join(f"[{verb}]({anchor(f'Queue.{verb}')})" for verb in awaited)
        parts.append(f"Awaited, with the arguments and the promises of `Queue`: {links}.\n")
    called = {verb: found for verb, found in functions.items() if not is_property(found[0])}
    parts += [documented(f"{name}.{verb}", verb, found) for verb, found in called.items()]
    return "\n".join(parts)


def is_verb(node: ast.stmt) -> bool:
    """Whether it makes a verb of `Queue` awaitable."""
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("verb(Queue.")


def errors_section(errors: dict[str, ast.ClassDef]) -> str:
    """What can be raised, and by whom it is caught."""
    rows = [
        (name, ", ".join(map(ast.unparse, error.bases)), " ".join((ast.get_docstring(error) or "").split()))
        for name, error in errors.items()
    ]
    return "## Errors\n\n" + table(("error", "is a", "meaning"), rows)


def constants_section(constants: dict[str, str]) -> str:
    """What is neither a class nor a function."""
    return "## Constants\n\n" + "".join(
        f"- `{name}`{f': {words}' if words else ''}\n" for name, words in constants.items()
    )


def anchor(title: str) -> str:
    """Where GitHub puts a heading."""
    return "#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def contents(page: str, queue: list[ast.ClassDef]) -> str:
    """The table of contents: every class, and the verbs of a queue."""
    lines = []
    for title in re.findall(r"^## (.*)$", page, flags=re.MULTILINE):
        lines.append(f"- [{title}]({anchor(title)})")
        if title == "Queue":
            for group, verbs in verbs_of_queue(queue).items():
                links = " · ".join(f"[{verb}]({anchor(f'Queue.{verb}')})" for verb in verbs)
                lines.append(f"  - {group}: {links}")
    return "\n".join(lines) + "\n"


def render() -> str:
    """The whole page."""
    names = public_names()
    native = Module(PACKAGE / "_native.pyi")
    defined = {name: module.definitions[name] for name, module in names.items() if name in module.definitions}
    queues = [found for found in (native.definitions["Queue"], defined["Queue"]) if isinstance(found, ast.ClassDef)]
    errors = {name: found for name, found in defined.items() if isinstance(found, ast.ClassDef) and is_error(name)}
    rest = [name for name in defined if name not in FIRST and name not in errors]
    sections = [queue_section(*queues)]
    for name in (*FIRST[1:], *rest, "Lock"):
        found = defined.get(name) or native.definitions[name]
        if isinstance(found, ast.ClassDef):
            sections.append(class_section(name, found))
        elif isinstance(found, Function):
            sections.append(f"## {name}\n\n{code(signature(name, found))}\n{ast.get_docstring(found)}\n")
    constants = {name: names[name].notes[name] for name in rest if isinstance(defined[name], ast.AnnAssign)}
    sections += [errors_section(errors), constants_section(constants)]
    page = "\n".join(sections)
    general = native.docstring.partition("\n")[2].strip()
    return "\n".join([INTRODUCTION, contents(page, queues), f"{general}\n", page])


def is_error(name: str) -> bool:
    """Whether it is raised for a reason of the queue's own."""
    return name.endswith("Error")


if __name__ == "__main__":
    page = HERE / "reference.md"
    if "--check" in sys.argv[1:]:
        sys.exit(None if page.read_text(encoding="utf-8") == render() else "reference.md is old; run make docs")
    page.write_text(render(), encoding="utf-8")
