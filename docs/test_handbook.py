"""The handbook hangs together: its links lead somewhere and its pictures are the ones the script draws."""

import ast
import itertools
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parent
PAGES = sorted(DOCS.glob("*.md"))
PICTURES = sorted((DOCS / "figures").glob("*.png"))


def links(page):
    return re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [*PAGES, DOCS.parent / "README.md"], ids=lambda page: "-".join(page.relative_to(DOCS.parent).parts)
)
def test_every_link_leads_to_a_file(page):
    broken = [link for link in links(page) if "://" not in link and not (page.parent / link).is_file()]
    assert not broken


def anchors(page):
    """The anchors of a page's headings, as they are made for it where the files are browsed, and on the site."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"\]\([^)]*\)", "", heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_anchor_is_that_of_a_heading(page):
    found = re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    pages = {file: page.parent / file if file else page for file, _ in found}
    known = {file: anchors(path) for file, path in pages.items() if path.suffix == ".md"}
    assert not [f"{file}#{anchor}" for file, anchor in found if anchor not in known[file]]


def test_the_figures_of_the_readme_are_those_of_the_results():
    def table(name, heading):
        lines = (DOCS.parent / name).read_text(encoding="utf-8").split("\n")
        start = lines.index(heading) + 2
        return list(itertools.takewhile(lambda line: line.startswith("| "), lines[start:]))

    number = re.compile(r"\d[\d,]*(?:\.\d+)?")
    measured = set(number.findall("\n".join(table("benchmarks/RESULTS.md", "| task | result | tables |"))))
    shown = table("README.md", "| task | result |")
    assert len(shown) == 5
    assert [n for line in shown for n in number.findall(line.replace("1 − AUC", "")) if n not in measured] == []


def test_every_page_is_in_the_contents():
    assert {page.name for page in PAGES} - {"README.md"} <= set(links(DOCS / "README.md"))


def test_every_picture_is_drawn_by_the_script_and_shown_on_a_page():
    source = (DOCS / "figures" / "make_figures.py").read_text(encoding="utf-8")
    drawn = set(re.findall(r'^    "([a-z-]+)": ', source, flags=re.MULTILINE))
    shown = {Path(link).stem for page in PAGES for link in links(page) if link.startswith("figures/")}
    assert {picture.stem for picture in PICTURES} == drawn == shown


@pytest.mark.parametrize("script", sorted(DOCS.glob("[ef]*/*.py")), ids=lambda script: script.name)
def test_pictures_are_made_by_calls_that_readers_have(script):
    """No script of the handbook draws: none imports what draws, or goes on to change a picture."""
    may = {"numpy", "pandas", "sklearn", "PIL", "tallybayes", *sys.stdlib_module_names}
    may |= {other.stem for other in DOCS.glob("experiments/*.py")}
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            assert {name.split(".")[0] for name in names} <= may
        assert not (isinstance(node, ast.Attribute) and node.attr in ("axes", "figure"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_small_and_sound(picture):
    assert picture.stat().st_size < 80_000
    with Image.open(picture) as image:
        image.verify()


PRINTED_TABLE = re.compile(r"\S {2,}\S.* {2,}\S|[│┘]")  # columns between spaces, bars, diagrams


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_code_fits_on_a_phone(page):
    """Code and output have at most 88 characters, rows of printed tables 100."""
    blocks = re.findall(r"^ *```.*?^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.split("\n")]
    wide = [line for line in lines if len(line) > 88]
    is_code = re.compile(r" *(>>>|\.\.\.|\$) ")
    assert [line for line in wide if is_code.match(line) or len(line) > 100 or not PRINTED_TABLE.search(line)] == []


PRIVATE_WORDS = (
    r"\b(told|tells?|telling|asked|asks|nobody|owed|strangers?|heaps?|(?<!hill )climb(?:s|ed|ing)?|mend(?:s|ed|ing)?"
    r"|beliefs?|refus\w+)\b"
)


@pytest.mark.parametrize(
    "name",
    ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"] + [f"docs/{page.name}" for page in PAGES],
)
def test_short_sentences_in_standard_terms(name):
    text = (DOCS.parent / name).read_text(encoding="utf-8")
    assert re.findall(PRIVATE_WORDS, text) == []
    lines = [line.strip() for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n")]
    prose = " ".join(line for line in lines if line and not line.startswith(("|", "#")))
    prose = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose))
    words = [len(sentence.split()) for sentence in re.split(r"(?<=[.!?:])\s+", prose)]
    assert sum(words) / len(words) <= (18 if name.startswith("docs/") else 20)
