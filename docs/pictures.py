"""Make the pictures of the docs anew, from the real command at a real terminal (tmux must be there).

python docs/pictures.py        writes docs/pictures/*.svg
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURES = Path(__file__).parent / "pictures"
SCRIPTS = sysconfig.get_path("scripts")
NAMES = ("decisions", "meeting", "incident", "ideas", "people", "retro", "roadmap", "budget", "travel", "glossary")
HANDLER = """
import time

def digest(item):
    for tenth in range(10):
        item.set_progress(tenth / 10, "asking the model")
        time.sleep(0.15)
    if "budget" in item.content:
        raise ValueError("the model refused: context of 9,000 tokens exceeded")
    return {"words": len(item.content.split())}
"""
# Fonts are the reader's own: a picture loads nothing from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "font-family: Fira Code", "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono"
)


class Terminal:
    """A terminal of 80 columns, in a folder of its own."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.server = ["tmux", "-L", f"pictures-{os.getpid()}", "-f", "/dev/null"]
        self.folder = folder
        environment = ["env", f"PATH={SCRIPTS}:{os.environ['PATH']}", "PS1=$ ", "TERM=xterm-256color"]
        self.tmux("new-session", "-d", "-x", "80", "-y", str(rows), "-c", str(folder), *environment, "bash", "--norc")

    def tmux(self, *arguments: str) -> str:
        """Give tmux a command."""
        return subprocess.run([*self.server, *arguments], check=True, capture_output=True, text=True).stdout

    def type(self, *keys: str) -> None:
        """Type, as a person would."""
        self.tmux("send-keys", *keys)

    def until(self, pattern: str) -> str:
        """Wait until something can be seen, and return the screen with its colours."""
        for _ in range(600):
            if re.search(pattern, self.tmux("capture-pane", "-p")):
                return self.tmux("capture-pane", "-e", "-p").rstrip()
            time.sleep(0.05)
        raise TimeoutError(self.tmux("capture-pane", "-p"))


@contextlib.contextmanager
def terminal(rows: int = 24) -> Iterator[Terminal]:
    """A terminal beside some documents."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pipeline.py").write_text(HANDLER)
        for document in NAMES:
            (folder / f"{document}.md").write_text(f"# {document}\nWhat we know about it.\n")
        made = Terminal(folder, rows)
        try:
            yield made
        finally:
            made.tmux("kill-server")


def svg(title: str, screen: str, folder: Path | None = None) -> str:
    """A screen as a picture, without the names of the machine it was made on."""
    if folder is not None:
        screen = screen.replace(str(folder), "/srv/notes")
    screen = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "host", screen)
    console = Console(record=True, width=80, file=open(os.devnull, "w"))  # noqa: SIM115 - lives as long as the script
    console.print(Text.from_ansi(screen))
    picture = console.export_svg(title=title, theme=MONOKAI, code_format=FORMAT)
    return re.sub(r" +$", "", picture, flags=re.MULTILINE)


def keep(name: str, picture: str) -> None:
    """Write a picture."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
    print(f"{name}.svg  {len(picture) / 1000:.0f} KB")


def process_and_status() -> None:
    """The bar with a failure above it, and what is left afterwards."""
    with terminal() as at:
        at.type("membox-queue ingest budget.md [d-t]*.md", "Enter")
        at.until("accepted")
        at.type("clear", "Enter")
        at.type("membox-queue process pipeline:digest --concurrency 2", "Enter")
        keep("process", svg("membox-queue process", at.until(r"failed.*\n.* [34]/"), at.folder))
        at.until("postponed")
        at.type("membox-queue ingest ideas.md --queue links; membox-queue ingest ideas.md people.md; clear", "Enter")
        at.type("membox-queue status", "Enter")
        keep("status", svg("membox-queue status", at.until(r"recent failures(?s:.*)\n\$"), at.folder))


def top() -> None:
    """The live view while a worker runs."""
    with terminal(rows=20) as at:
        at.type("membox-queue ingest budget.md [d-t]*.md --spawn pipeline:digest", "Enter")
        at.until("accepted")
        at.type("clear; membox-queue top --every 0.2s", "Enter")
        keep(
            "top",
            svg("membox-queue top", at.until(r"(?s)done +[3-9].*in progress.*[3-7]0%.*items a minute"), at.folder),
        )
        at.type("q")
        at.type("membox-queue purge --status pending --yes", "Enter")
        at.until("removed")


def demo() -> None:
    """The demo, line by line as it comes; without animation, its last screen."""
    lines, times = ["$ membox-queue demo"], [0.0]
    started = time.monotonic()
    with subprocess.Popen([f"{SCRIPTS}/membox-queue", "demo"], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            lines.append(line.rstrip("\n"))
            times.append(time.monotonic() - started)
    assert running.returncode == 0, lines
    picture = svg("membox-queue demo", "\n".join(lines))

    def delayed(found: re.Match[str]) -> str:
        return f'{found[0]} style="animation: come 0.01s {times[int(found[1])]:.2f}s both"'

    # Every line of text names its clip path, which carries the line's number.
    picture = re.sub(r'<text [^>]*clip-path="url\(#[^)]*-line-(\d+)\)"', delayed, picture)
    keep(
        "demo", picture.replace("<style>", "<style>\n    @keyframes come { from { opacity: 0 } to { opacity: 1 } }", 1)
    )


if __name__ == "__main__":
    for make in (process_and_status, top, demo):
        if len(sys.argv) < 2 or make.__name__ in sys.argv[1:]:
            make()
