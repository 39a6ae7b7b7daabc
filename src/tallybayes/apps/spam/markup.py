"""What a reader of HTML sees, what is hidden from them, and where its links and pictures lead."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

HIDDEN_PLACES = 200  # of a page, where text is hidden

_TAG = re.compile(r"<[/!?a-zA-Z][^<>]{0,4000}>")
# Tags within words: letters on both sides of them are one word to a reader.
_WITHIN = re.compile(r"</?(?:b|i|u|em|strong|font|span|big|small|a|tt|s|sub|sup)(?:\s[^<>]{0,4000})?>", re.IGNORECASE)
_ADDRESS = re.compile(r"""\b(href|src|background|action)\s{0,9}=\s{0,9}["']?([^\s"'<>]{1,1000})""", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|xml)\b[^<>]{0,4000}>", re.IGNORECASE)
_HIDING = re.compile(
    r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden|font-size\s{0,9}:\s{0,9}[01](?![0-9.])"
    r"""|(?<![-\w])color\s{0,9}[:=]\s{0,9}["']?(?:#fff|white))""",
    re.IGNORECASE,
)
_PAINTED = re.compile(r"""bgcolor\s{0,9}=\s{0,9}["']?(?!#fff|white)|background""", re.IGNORECASE)
_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,15})")


class Page(NamedTuple):
    """The visible text, the hidden text, what is linked to, what is fetched, and the names of tags."""

    visible: str
    hidden: str
    links: list[str]
    sources: list[str]
    tags: set[str]


def read_page(html: str) -> Page:
    """Take a page apart; every step is linear in its length."""
    hidden: list[str] = []
    if "<!--" in html:
        pieces = html.split("<!--")
        for number in range(1, len(pieces)):
            comment, end, after = pieces[number].partition("-->")
            if end:
                hidden.append(comment)
                pieces[number] = after
        html = "".join(pieces)
    if _UNSEEN.search(html):
        html = _without_programs(html)
    addresses = _ADDRESS.findall(html)
    tags = set(map(str.lower, _NAME.findall(html)))
    if _HIDING.search(html):
        html = _without_hidden(html, hidden)
    text = _TAG.sub(" ", _WITHIN.sub("", html))
    return Page(
        unescape(text) if "&" in text else text,
        " ".join(hidden),
        [value for name, value in addresses if name.lower() in ("href", "action")],
        [value for name, value in addresses if name.lower() in ("src", "background")],
        tags,
    )


def _without_programs(html: str) -> str:
    """A page without scripts and styles."""
    low, kept, place, endless = html.lower(), [], 0, set()
    if len(low) != len(html):  # letters that are two in lower case
        low = html
    for found in _UNSEEN.finditer(html):
        name = found[1].lower()
        if found.start() < place or name in endless:
            continue
        end = low.find(f"</{name}", found.end())
        if end < 0:
            endless.add(name)  # looked for once
            continue
        kept.append(html[place : found.start()])
        place = end
    return " ".join([*kept, html[place:]])


def _without_hidden(html: str, hidden: list[str]) -> str:
    """A page without the text that is hidden, which is added to the list."""
    painted = _PAINTED.search(html) is not None
    low, kept, place = html.lower(), [], 0
    if len(low) != len(html):
        low = html
    for number, found in enumerate(_HIDING.finditer(html)):
        if number == HIDDEN_PLACES:
            break
        start = html.rfind("<", max(place, found.start() - 4000), found.start())
        first = html.find(">", found.end(), found.end() + 4000) + 1
        name = _NAME.match(html, start) if start >= 0 else None
        if not name or not first or (painted and found[0][0].lower() == "c"):
            continue  # within no tag; or white, on something that is not
        end = low.find(f"</{name[1].lower()}", first)
        end = end if end >= 0 else len(html)
        kept.append(html[place:start])
        hidden.append(_TAG.sub(" ", html[first:end]))
        place = end
    return " ".join([*kept, html[place:]])
