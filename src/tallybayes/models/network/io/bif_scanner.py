"""Scanner of BIF files: names, numbers and comments, in one pass; and quoting of names."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from tallybayes.errors import DataError, FileError

# Possessive quantifiers make matching linear in the text. All line ends are "\n".
_SPACE = re.compile(r"(?>[ \t\n\f\v]+|//[^\n]*+|/\*(?s:.*?)\*/)*+")  # and comments
_WORD = re.compile(r'(?>[^ \t\n\f\v,;{}()|"/]++|/(?![/*]))*+')  # a single slash is part of it
_QUOTED = re.compile(r'"(?>[^"\\\n]++|\\[^\n])*+"')
_ESCAPE = re.compile(r"\\(.)")
_KEYWORD = re.compile(r"[A-Za-z]*")
_DIGITS = re.compile(r"[0-9]{1,15}+(?![0-9])")
_NUMBER = re.compile(r"[0-9.eE+-]*")
_PLAIN = re.compile(r'[^\s,;{}()\[\]|"/]+')

_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r"}
_ESCAPED = str.maketrans({meant: "\\" + letter for letter, meant in _ESCAPES.items()})

ROUNDED = 1e-6  # rows whose sum differs from 1 by less are kept, so that files are read and written bit by bit
TOLERANCE = 1e-3  # largest difference of the sum of a row from 1: printed digits are few
REPAIR = "Correct the file, or write it again with the program that made it."


class Scanner:
    r"""A text and the current position in it, which every method advances.

    White space and the comments ``// …`` and ``/* … */`` are skipped. A word ends at white space, at one of ``, ; { }
    ( ) | "``, or at a comment. ``"quoted text"`` may have any characters but line ends; in it, ``\"``, ``\\``,
    ``\n`` and ``\r`` stand for a quote, a backslash, a newline and a carriage return.

    Parameters
    ----------
    text : str
    source : str
        The name of the file in messages.

    Examples
    --------
    >>> from tallybayes.models.network.io.bif_scanner import Scanner
    >>> scanner = Scanner('(<5, "No change") // of two parents', "example")
    >>> scanner.expect("(")
    >>> list(scanner.names(")", "a level"))
    ['<5', 'No change']
    """

    def __init__(self, text: str, source: str) -> None:
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.source = source
        self.position = 0

    def error(self, what: str, hint: str = REPAIR, *, position: int | None = None) -> FileError:
        """Return an error with the line of a position; None is the current one."""
        return FileError.bad_line(self.source, self.line(self.position if position is None else position), what, hint)

    def line(self, position: int) -> int:
        """Return the line number of a position; it takes time linear in the text, so it is for messages only."""
        return self.text.count("\n", 0, position) + 1

    def unexpected(self, expected: str, hint: str = REPAIR) -> FileError:
        """Return an error with the word at the current position."""
        symbol = self.peek()
        what = shown(self._next(_WORD) or symbol) if symbol else "the end of the file"
        return self.error(f"found {what}; expected {expected}", hint)

    def _next(self, pattern: re.Pattern[str]) -> str:
        """Return the text that matches a pattern after white space and comments, without reading it."""
        self.peek()
        match = pattern.match(self.text, self.position)
        return match[0] if match else ""

    def _take(self, pattern: re.Pattern[str], expected: str) -> str:
        """Read the text that matches a pattern; raise FileError if there is none."""
        text = self._next(pattern)
        if not text:
            raise self.unexpected(expected)
        self.position += len(text)
        return text

    def peek(self) -> str:
        """Skip white space and comments, and return the next character; "" at the end."""
        space = _SPACE.match(self.text, self.position)
        self.position = space.end() if space else self.position
        if self.text.startswith("/*", self.position):
            raise self.error("found '/*' without '*/' after it; expected comments to end", "Close the comment.")
        return self.text[self.position : self.position + 1]

    def accept(self, symbol: str) -> bool:
        """Read a symbol if it is next, and return whether it was."""
        if self.peek() != symbol:
            return False
        self.position += 1
        return True

    def expect(self, symbol: str) -> None:
        """Read a symbol; raise FileError if it is not next."""
        if not self.accept(symbol):
            raise self.unexpected(repr(symbol))

    def keyword(self, expected: Iterable[str], instead: str = "", hint: str = REPAIR) -> str:
        """Read one of several keywords; `instead` is another valid continuation, for messages."""
        word = self._next(_KEYWORD)
        if word not in expected:
            raise self.unexpected(
                " or ".join([repr(keyword) for keyword in expected] + [instead] * bool(instead)), hint
            )
        self.position += len(word)
        return word

    def whole_number(self) -> int:
        """Read a non-negative integer."""
        return int(self._take(_DIGITS, "a whole number"))

    def name(self, what: str) -> str:
        """Read a name or a level, quoted or not."""
        if self.peek() != '"':
            return self._take(_WORD, what)
        if not self._next(_QUOTED):
            hint = 'Close it, and write a quote inside it as \\" and the end of a line as \\n.'
            raise self.error("found a quote without a closing quote on its line; expected one", hint)
        # an unknown escape is a backslash
        return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), self._take(_QUOTED, what)[1:-1])

    def names(self, close: str, what: str) -> Iterator[str]:
        """Read names one by one up to a symbol, with or without commas between them."""
        comma = False
        while comma or self.peek() != close:
            yield self.name(f'{what}; an empty one is written as ""' if comma else f"{what} or {close!r}")
            comma = self.accept(",")
        self.position += 1

    def numbers(self, most: int, into: array[float]) -> int:
        """Read probabilities up to the semicolon; append at most `most` of them, and return their number."""
        n_found = 0
        while not self.accept(";"):
            start = self.position
            digits = self._take(_NUMBER, "a number or ';'")
            if n_found < most:
                into.append(self._probability(digits, start))
            n_found += 1
            while self.accept(","):
                pass
        return n_found

    def skip_property(self) -> None:
        """Skip the rest of a property, up to the semicolon; one in a quoted text at its start does not end it."""
        self.position += len(self._next(_QUOTED))
        end = self.text.find(";", self.position)
        if end < 0:
            raise self.error("found a property without ';' after it; expected properties to end")
        self.position = end + 1

    def _probability(self, digits: str, start: int) -> float:
        try:
            value = float(digits)
        except ValueError:
            raise self.error(f"found {shown(digits)}; expected a number", position=start) from None
        if not 0.0 <= value <= 1.0 + TOLERANCE:
            raise self.error(f"found {shown(digits)}; expected a probability, from 0 to 1", position=start)
        return value


def shown(text: str) -> str:
    """Return a short excerpt of untrusted text for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def quote_name(name: object) -> str:
    r"""Return a name or a level as written to a file: quoted if it has special characters.

    Examples
    --------
    >>> from tallybayes.models.network.io.bif_scanner import quote_name
    >>> print(quote_name("<5"), quote_name("No change"), quote_name('5" tall'), quote_name(True))
    <5 "No change" "5\" tall" True
    """
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = "Replace what UTF-8 cannot encode: string.encode('utf-8', 'replace').decode()."
        raise DataError.wrong_type("a name or level", shown(text), "text without surrogates", hint) from error
    return text if _PLAIN.fullmatch(text) and text.isprintable() else f'"{text.translate(_ESCAPED)}"'
