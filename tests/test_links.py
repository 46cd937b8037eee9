"""Every link of the documentation leads to a file that is there, and to a heading that is in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "llms.txt", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benches/*.md")])
FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def prose(page):
    """The page without its blocks and code."""
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text(encoding="utf-8")))


def anchors(page):
    """Where GitHub puts the headings of a page."""
    found = []
    for title in re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        name, _, anchor = target.partition("#")
        if name.startswith(("https:", "http:", "mailto:")):
            continue
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("folder", ["docs", "docs/adr"])
def test_the_index_names_every_page(folder):
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / folder) for page in (ROOT / folder).glob("**/*.md") if page.name != "README.md"]
    if folder == "docs":
        pages = [page for page in pages if page.parts[0] != "adr"]
    assert pages
    assert [str(page) for page in pages if f"({page.as_posix()})" not in index] == []
