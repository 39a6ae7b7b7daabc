"""Docstrings of numpydoc's form as Markdown: sections, tables of parameters, examples that can be copied."""

from __future__ import annotations

import re
from collections.abc import Callable

Link = Callable[[str], str | None]
CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
# Emphasis as it is written in docstrings; any other asterisk is one, such as that of (*given, columns).
EMPHASIS = re.compile(r"(?<![\w*(])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
LISTED = ("Parameters", "Attributes")


def sections(text: str) -> dict[str, str]:
    """The text before the first heading under ``""``, and that of every section under its heading."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"": parts[0].strip("\n")} | {
        name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def entries(body: str) -> list[tuple[str, str, str]]:
    """Names, types and descriptions of a section that lists them."""
    found = []
    for part in re.split(r"^(?=\S)", body, flags=re.MULTILINE):
        if not part.strip():
            continue
        head, _, rest = part.partition("\n")
        names, _, kind = head.partition(" : ")
        items = re.split(r"\n\s*- ", rest)  # of a list, each on a line of its own
        found.append((names.strip(), kind.strip(), "\n• ".join(" ".join(item.split()) for item in items)))
    return found


def inline(text: str, link: Link) -> str:
    """A text with its code as code, linked where `link` knows the name."""
    shown, end = "", 0
    for match in CODE.finditer(text):
        shown += plain(text[end : match.start()])
        code = match[1] or match[2]
        place = link(code)
        shown += f"[`{code}`]({place})" if place else f"`{code}`"
        end = match.end()
    return shown + plain(text[end:])


def typed(text: str, link: Link) -> str:
    """The words for a type, in which names of classes are linked, too."""
    shown = inline(text, link)
    if "](" in shown:
        return shown

    def name(match: re.Match[str]) -> str:
        place = link(match[0])
        return f"[{match[0]}]({place})" if place else match[0]

    return re.sub(r"\b[A-Z]\w+\b", name, shown)


def plain(text: str) -> str:
    """Words whose asterisks and brackets are what they are, but for emphasis."""
    text = EMPHASIS.sub("\0\\1\0", text).replace("*", "\\*").replace("\0", "*")
    return text.replace("[", "\\[").replace("<", "&lt;")


def prose(text: str, link: Link) -> str:
    """Paragraphs, lists, formulas that are set in, and examples."""
    parts = []
    for block in re.split(r"\n{2,}", text):
        if block.startswith(">>>"):
            parts.append(f"```pycon\n{block}\n```")
        else:
            parts.append(block if block.startswith("    ") else inline(block, link))
    return "\n\n".join(parts)


def cell(kind: str, text: str, link: Link) -> str:
    """Return the table cell of a name: its type, and below it the description."""
    both = (f"*{typed(kind, link)}*" if kind else "", inline(text, link))
    return "<br>".join(part for part in both if part).replace("\n", "<br>").replace("|", "\\|")


def listed(title: str, body: str, link: Link) -> str:
    """A section of names as a table."""
    lines = [f"| {title.lower().removesuffix('s')} | description |", "|---|---|"]
    for names, kind, text in entries(body):
        shown = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        lines.append(f"| {shown} | {cell(kind, text, link)} |")
    return "\n".join(lines)


def markdown(text: str, link: Link, skip: tuple[str, ...] = ()) -> str:
    """A docstring as Markdown, with all but its summary below bold words rather than headings."""
    parts = []
    for title, body in sections(text).items():
        if not body or title in skip:
            continue
        if title in LISTED:
            parts.append(listed(title, body, link))
        elif title == "Returns":
            returned = [
                " — ".join(
                    part for part in (typed(f"{names} : {kind}" if kind else names, link), inline(rest, link)) if part
                )
                for names, kind, rest in entries(body)
            ]
            parts.append("**Returns** " + "; ".join(returned))
        else:
            parts.append((f"**{title}**\n\n" if title not in ("", "Examples") else "") + prose(body, link))
    return "\n\n".join(parts)
