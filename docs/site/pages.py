"""Gather the pages of the site: ``python docs/site/pages.py`` writes them to build/pages, and build/mkdocs.yml beside.

The handbook is as it is in docs/. Pages that live elsewhere come with it, the reference is made of the docstrings, and
``tb.something`` in the text of any page becomes a link to it. `zensical` then makes the site of them (``make docs``).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from textwrap import dedent

import formulas

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
# Pages from outside docs/, by where they are on the site.
OUTSIDE = {
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/RESULTS.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
} | {
    f"results/{page.name}": f"benchmarks/results/{page.name}"
    for page in sorted((ROOT / "benchmarks/results").glob("*.md"))
}
# Long lists that would bury what is looked for.
UNSEARCHED = ("changelog.md", "benchmarks.md", *(place for place in OUTSIDE if place.startswith("results/")))
ASSETS = ("math.woff2", "site.css", "site.js", "iframe-worker.js", "search_query.js", "favicon.svg")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)(#[^)\s]*)?\)")
FORMULA = re.compile(r"(?<=\n\n)((?: {4}(?!>>>).*\n)+)(?=\n|\Z)")
CODE = re.compile(r"(`[^`]*`|\]\([^)]*\))")
TABLE_HEAD = re.compile(r"^\|.*\|\n(?=\|[ :|-]+\|$)", flags=re.MULTILINE)
FENCE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?<!\[)`(tb\.[A-Za-z_]\w*(?:\.[a-z_]\w*)?)((?:[^\w`.][^`]*)?)`(?!\])")


def origins() -> dict[str, Path]:
    """Where the text of every page comes from that somebody wrote, by its place on the site."""
    found = {page.name: page for page in sorted(DOCS.glob("*.md"))}
    return found | {place: ROOT / name for place, name in OUTSIDE.items()}


def moved(text: str, origin: Path, places: dict[str, str], here: str = "") -> str:
    """A page whose links lead to the pages of the site; what is nowhere on it stays as it is, and the build says so."""

    def link(match: re.Match[str]) -> str:
        start, target, anchor = match[1], match[2], match[3] or ""
        if not target or "://" in target:
            return match[0]
        file = PurePosixPath(os.path.relpath(origin.parent / target, ROOT)).as_posix()
        place = os.path.relpath(places[file], PurePosixPath(here).parent) if file in places else target
        return f"{start}{place}{anchor})"

    return LINK.sub(link, text)


def linked(text: str, anchors: dict[str, str], here: str = "") -> str:
    """A page in whose text every `tb.name` leads to the reference; examples and headings stay as they are."""

    def name(match: re.Match[str]) -> str:
        whole = match[1]
        place = anchors.get(whole) or anchors.get(whole.rpartition(".")[0])
        return f"[`{whole}{match[2]}`]({os.path.relpath(place, PurePosixPath(here).parent)})" if place else match[0]

    parts = FENCE.split(text)
    for place in range(0, len(parts), 2):
        blocks = FORMULA.split(TABLE_HEAD.sub(named_columns, parts[place]))
        blocks[1::2] = [typeset(block, blocks[2 * k]) for k, block in enumerate(blocks[1::2])]
        lines = "".join(blocks).split("\n")
        parts[place] = "\n".join(
            line if line.startswith(("#", "    ", "<div")) else NAMED.sub(name, indexed(line)) for line in lines
        )
    return "".join(parts)


def typeset(block: str, before: str) -> str:
    """Return an indented block as a formula, unless it continues the item of a list."""
    above = before.rstrip().rpartition("\n\n")[2]
    return block if above.startswith(("- ", "* ", "1. ")) else formulas.block(dedent(block)) + "\n"


def named_columns(head: re.Match[str]) -> str:
    """Return the head of a table in which every column has a name, which is read aloud if the page does not show it."""
    return re.sub(r"(?<=\|) *(?=\|)", " <span class='read-aloud'>entry</span> ", head[0])


def indexed(line: str) -> str:
    """Return a line of prose with real indices and exponents; code and links stay as they are."""
    parts = CODE.split(line)
    parts[::2] = map(formulas.inline, parts[::2])
    return "".join(parts)


def configuration(navigation: dict[str, list[tuple[str, str]]]) -> str:
    """What the site is made by: mkdocs.yml, with the pages of the reference at their place."""
    lines = []
    for line in (HERE / "mkdocs.yml").read_text(encoding="utf-8").splitlines():
        if line.strip() != "- (the pages of the reference)":
            lines.append(line)
            continue
        space = line[: len(line) - len(line.lstrip())]
        for subject, every in navigation.items():
            if len(every) == 1:
                lines.append(f"{space}- {subject}: {every[0][1]}")
                continue
            lines.append(f"{space}- {subject}:")
            lines += [f"{space}    - {title}: {file}" for title, file in every]
    return "\n".join(lines) + "\n"


def write(target: Path) -> int:
    """Write all pages, and how many they are."""
    from api import every_anchor, navigation, reference

    shutil.rmtree(target / "pages", ignore_errors=True)
    shutil.copytree(DOCS / "figures", target / "pages/figures", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for picture in DOCS.glob("*.png"):
        shutil.copy(picture, target / "pages")
    (target / "pages/assets").mkdir()
    for asset in ASSETS:
        shutil.copy(HERE / asset, target / "pages/assets")

    written, names = origins(), every_anchor()
    places = {PurePosixPath(origin.relative_to(ROOT)).as_posix(): place for place, origin in written.items()}
    texts = {
        place: linked(moved(origin.read_text(encoding="utf-8"), origin, places, place), names, place)
        for place, origin in written.items()
    }
    for place in UNSEARCHED:
        texts[place] = "---\nsearch:\n  exclude: true\n---\n\n" + texts[place]
    texts |= reference()
    for place, text in texts.items():
        file = target / "pages" / place
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (target / "mkdocs.yml").write_text(configuration(navigation()), encoding="utf-8")
    return len(texts)


if __name__ == "__main__":
    n_pages = write(ROOT / "build")
    sys.stderr.write(f"{n_pages} pages in build/pages\n")
