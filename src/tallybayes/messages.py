"""Text of messages: redacted passwords, suggestions for misspelled names, conversions of unsupported types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

IMPOSSIBLE_HINT = (  # of a row or sequence of probability 0
    "Check its values. If parameters are estimated, estimate='bayes' gives unseen values positive probability."
)
# Passwords of database URLs may contain spaces, but no line break. Other URLs end at a space.
_ACCOUNT = re.compile(r"\b(postgres(?:ql)?://).*@|\b([a-z][\w+.-]*://)\S*@", re.IGNORECASE)
_CONNECTION = re.compile(r"://|\b(?:host|hostaddr|dbname|user|port)\s*=", re.IGNORECASE)
_PASSWORD = re.compile(
    r"\b((?:ssl)?password|passwd|pwd)(\s*=\s*)('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s&'\",;)]+)", re.IGNORECASE
)


_SPOOLED = re.compile(r"[^\s'\"]*[/\\]tally-spool-\w+[/\\]((?:[\w~-]|%[0-9A-F]{2})+)(?:\.(?:gz|bz2|zst|lz4)\b)?")


def redacted(text: str) -> str:
    """Return the text without accounts in URLs, passwords in connection strings and paths of temporary copies.

    Examples
    --------
    >>> redacted("wrote 3 rows to postgresql://ann:secret@server/shop")
    'wrote 3 rows to postgresql://…@server/shop'
    >>> redacted("host=server user=ann password='my secret' dbname=shop")
    'host=server user=ann password=… dbname=shop'
    """
    if "tally-spool-" in text:
        text = _SPOOLED.sub(lambda found: unquote(found[1]), text)
    if "@" in text and "://" in text:
        text = _ACCOUNT.sub(lambda found: f"{found[1] or found[2]}…@", text)
    return _PASSWORD.sub(r"\1\2…", text) if "=" in text and _CONNECTION.search(text) else text


def closest_names(name: object, known: Iterable[object], most: int = 1) -> list[object]:
    """Return the known names spelled most like an unknown name, the closest first.

    Examples
    --------
    >>> closest_names("Specis", ["island", "species", "sex"])
    ['species']
    """
    from difflib import get_close_matches

    normalized: dict[str, object] = {}
    for other in known:
        normalized.setdefault(str(other).casefold().replace("-", "_").replace(" ", "_"), other)
    word = str(name).casefold().replace("-", "_").replace(" ", "_")
    return [normalized[close] for close in get_close_matches(word, normalized, most)]


def did_you_mean(names: Iterable[object], known: Iterable[object], otherwise: str = "") -> str:
    """Return the hint for misspelled names: the closest known name of each, or another hint if none is close.

    Examples
    --------
    >>> did_you_mean(["Specis", "sx"], ["island", "species", "sex"])
    "Did you mean 'species', 'sex'?"
    """
    known = list(known)
    near = dict.fromkeys(repr(close) for name in names for close in closest_names(name, known))
    return f"Did you mean {', '.join(list(near)[:8])}?" if near else otherwise


def with_article(name: str) -> str:
    """Return the name of a class with its indefinite article.

    Examples
    --------
    >>> with_article("NaiveBayes"), with_article("AutoClassifier")
    ('a NaiveBayes', 'an AutoClassifier')
    """
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


_CONVERSIONS = {  # by type name, including Arrow types; pandas is not imported
    "date Timestamp Period datetime64": (
        "Convert dates to numbers or labels, such as column.dt.month or days since a date."
    ),
    "timedelta timedelta64 duration": "Convert durations to numbers, such as column.dt.total_seconds().",
    "time time32 time64": "Convert times of day to numbers, such as hours: t.hour + t.minute / 60.",
    "bytes binary large_binary binary_view fixed_size_binary": (
        "Convert bytes to strings: column.str.decode('utf-8')."
    ),
    "list tuple ndarray dict set": "Split them into separate columns.",
    "complex complex64 complex128": "Complex data not supported: pass the real and the imaginary parts as two columns.",
    "Interval": "Convert intervals to numbers, such as midpoints: column.map(lambda bin: bin.mid).",
}


def conversion_hint(value: object) -> str:
    """Return advice for converting values that are neither numbers nor labels; "" for other types."""
    return conversion_hint_for_type(*(kind.__name__ for kind in type(value).__mro__))


def conversion_hint_for_type(*kinds: str) -> str:
    """Return advice for converting a column, by the names of its type; "" for other types."""
    return next((hint for names, hint in _CONVERSIONS.items() if not set(kinds).isdisjoint(names.split())), "")
