"""Visible text, hidden text, and addresses of links and images of an HTML page."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

TAGS = 100  # maximum number of distinct tags of a page

# Inline tags: they do not separate words.
INLINE = {"a", "b", "big", "em", "font", "i", "s", "small", "span", "strong", "sub", "sup", "tt", "u"}
INLINE |= {f"/{name}" for name in INLINE}
_BLOCKS = (
    "br",
    "p",
    "td",
    "tr",
    "table",
    "div",
    "center",
    "li",
    "ul",
    "hr",
    "tbody",
    "html",
    "body",
    "head",
    "h1",
    "h2",
)
SIMPLE = {name: name for name in (*INLINE, *_BLOCKS, *(f"/{name}" for name in _BLOCKS))}  # tags without attributes
SIMPLE |= {name.upper(): name for name in SIMPLE}
UNREAD = {"script", "style", "xml"}
_ADDRESS = re.compile(r"""(href|src|background|action)\s{0,9}=\s{0,9}["']?([^\s"'<>]{1,1000})""")
_HIDING = re.compile(
    r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden|font-size\s{0,9}:\s{0,9}[01](?![0-9.])"
    r"""|(?<![-\w])(color)\s{0,9}[:=]\s{0,9}["']?(?:#fff|white)"""
)
_NO_CHARACTER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}")
_PAINTED = re.compile(r"""bgcolor\s{0,9}=(?!\s{0,9}["']?(?:#fff|white))|background""")


class Page(NamedTuple):
    """Visible text, hidden text, link targets, fetched addresses, and names of tags."""

    visible: str
    hidden: str
    links: list[str]
    sources: list[str]
    tags: list[str]


def read_page(html: str) -> Page:
    """Parse a page in one pass over its tags.

    Examples
    --------
    >>> page = read_page('<p>Win<b>ner</b>! <a href="http://example.com">here</a><p style="display:none">weather')
    >>> page.visible.split(), page.hidden, page.links
    (['Winner!', 'here'], 'weather', ['http://example.com'])
    """
    seen: list[str] = []
    hidden: list[str] = []
    links: list[str] = []
    sources: list[str] = []
    tags: dict[str, None] = {}
    html = _without_comments(html, hidden) if "<!--" in html else html
    first, *pieces = html.split("<")
    seen.append(first)
    target = seen  # list that receives the text
    until = ""  # until this tag
    white = True  # whether the background is white
    for piece in pieces:
        tag, end, text = piece.partition(">")
        if not end or not tag:
            target.append(f"<{piece}")
            continue
        if not until and (simple := SIMPLE.get(tag)):  # most tags
            seen.append(text if simple in INLINE else " " + text)
            if simple[0] != "/":
                tags[simple] = None
            continue
        tag = tag.lower()
        name = (tag.split(None, 1) or [""])[0]
        if name == until:
            target.append(" ")
            target = seen
            until = ""
        if "=" in tag:
            _add_addresses(tag, links, sources)
            white = white and not ("b" in tag and _PAINTED.search(tag[:4000]))
            if not until and ("olor" in tag or "style" in tag) and _hides_text(tag, white):
                target = hidden
                until = f"/{name}"
        if name in UNREAD and not until:
            target = []
            until = f"/{name}"
        if name not in INLINE:
            target.append(" ")
        if not name.startswith("/"):
            tags[name] = None
        target.append(text)
    return Page(characters("".join(seen)), characters("".join(hidden)).strip(), links, sources, list(tags)[:TAGS])


def _add_addresses(tag: str, links: list[str], sources: list[str]) -> None:
    """Append the addresses in the attributes of a tag to those linked to and those fetched."""
    if "href" in tag or "src" in tag or "background" in tag or "action" in tag:
        for attribute, address in _ADDRESS.findall(tag[:4000]):
            (links if attribute in ("href", "action") else sources).append(address)


def _hides_text(tag: str, on_white: bool) -> bool:
    """Return whether the style of a tag hides its text; white text is hidden only on a white background."""
    hides = _HIDING.search(tag[:4000])
    return hides is not None and (on_white or not hides[1])


def characters(text: str) -> str:
    """Decode character references; references to invalid characters are removed."""
    if "&" not in text:
        return text
    return unescape(_NO_CHARACTER.sub(" ", text) if "&#" in text else text)


def _without_comments(html: str, hidden: list[str]) -> str:
    """Remove the comments, and append them to the hidden text."""
    pieces = html.split("<!--")
    for number in range(1, len(pieces)):
        comment, end, after = pieces[number].partition("-->")
        if end:
            hidden += (comment, " ")
            pieces[number] = after
    return "".join(pieces)
