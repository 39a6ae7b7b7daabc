"""The text of a BIF file: names, numbers and comments, read once from front to back; and names as they are written."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from tallybayes.errors import DataError, FileError

# Single classes of characters, each repeated once: no text makes them look twice. Line ends are all "\n" by then.
_SPACE = re.compile(r"[ \t\n\f\v]*")
_BETWEEN = re.compile(r"[ \t\n\f\v,]*")
_WORD = re.compile(r'[^ \t\n\f\v,;{}()|"/]*')
_INSIDE = re.compile(r'[^"\\\n]*')
_KEYWORD = re.compile(r"[A-Za-z]*")
_DIGITS = re.compile(r"[0-9]*")
_NUMBER = re.compile(r"[ \t\n\f\v,]*([0-9.eE+-]+)")
_PLAIN = re.compile(r'[^\s,;{}()\[\]|"/]+')

_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r"}
_WRITTEN = str.maketrans({meant: "\\" + letter for letter, meant in _ESCAPES.items()})

ROUNDED = 1e-6  # rows closer to 1 than this are kept as they are, so that a file is read and written to the last bit
TOLERANCE = 1e-3  # how far from 1 a row may sum: printed digits are few
REPAIR = "Correct the file by hand, or write it anew with the program that made it."


class Scanner:
    r"""A place in a text, moved on by what is read there.

    White space and the comments ``// …`` and ``/* … */`` are skipped. A word ends at white space, at one of ``, ; { }
    ( ) | "`` or where a comment begins; ``"quoted text"`` may hold anything but the end of a line, and ``\"``, ``\\``,
    ``\n``, ``\r`` in it stand for a quote, a backslash and the two ends of a line.

    Parameters
    ----------
    text : str
    source : str
        What messages call the file.

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
        self.source, self.place = source, 0

    def error(self, what: str, hint: str = REPAIR, *, place: int | None = None) -> FileError:
        """What is wrong, with the line of a place (by default, this one)."""
        return FileError.bad_line(self.source, self.line(self.place if place is None else place), what, hint)

    def line(self, place: int) -> int:
        """The number of the line of a place; it counts from the start, so it is for messages only."""
        return self.text.count("\n", 0, place) + 1

    def unexpected(self, expected: str, hint: str = REPAIR) -> FileError:
        """Something else is here than there should be."""
        self.peek()
        word = self.text[self.place : self._word_end()]
        found = shown(word or self.text[self.place]) if self.place < len(self.text) else "the end of the file"
        return self.error(f"found {found}; expected {expected}", hint)

    def peek(self) -> str:
        """Move on to what comes next and return its first character; "" at the end."""
        while True:
            self.place = _end(_SPACE, self.text, self.place)
            if self.text.startswith("//", self.place):
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
            elif self.text.startswith("/*", self.place):
                end = self.text.find("*/", self.place + 2)
                if end < 0:
                    raise self.error(
                        "found '/*' without a '*/' behind it; expected comments to end", "Close the comment."
                    )
                self.place = end + 2
            else:
                return self.text[self.place : self.place + 1]

    def accept(self, symbol: str) -> bool:
        """Read a symbol if it comes next."""
        if self.peek() != symbol:
            return False
        self.place += 1
        return True

    def expect(self, symbol: str) -> None:
        """Read a symbol that has to come next."""
        if not self.accept(symbol):
            raise self.unexpected(repr(symbol))

    def keyword(self, expected: Iterable[str], instead: str = "", hint: str = REPAIR) -> str:
        """Read one of several words of the format; `instead` says in messages what might stand here, too."""
        self.peek()
        word = self.text[self.place : _end(_KEYWORD, self.text, self.place)]
        if word not in expected:
            raise self.unexpected(" or ".join([repr(known) for known in expected] + [instead] * bool(instead)), hint)
        self.place += len(word)
        return word

    def whole_number(self) -> int:
        """Read a number of things."""
        self.peek()
        digits = self.text[self.place : _end(_DIGITS, self.text, self.place)]
        if not 0 < len(digits) < 16:
            raise self.unexpected("a whole number")
        self.place += len(digits)
        return int(digits)

    def name(self, what: str) -> str:
        """Read a name or a level, quoted or not."""
        if self.peek() == '"':
            start, quoted = self.place, self._quoted()
            if quoted is None:
                hint = 'Close it, and write a quote inside it as \\" and the end of a line as \\n.'
                raise self.error("found a quote that is not closed on its line; expected another", hint, place=start)
            return quoted
        word = self.text[self.place : self._word_end()]
        if not word:
            raise self.unexpected(what)
        self.place += len(word)
        return word

    def names(self, close: str, what: str) -> Iterator[str]:
        """Read names one by one up to a symbol, with or without commas between them."""
        comma = False
        while comma or self.peek() != close:
            yield self.name(f'{what}; an empty one is written as ""' if comma else f"{what} or {close!r}")
            comma = self.accept(",")
        self.place += 1

    def numbers(self, most: int, into: array[float]) -> int:
        """Read probabilities up to the semicolon, keep at most so many and return how many there are."""
        n_found = 0
        while True:
            found = _NUMBER.match(self.text, self.place)
            if found:
                if n_found < most:
                    into.append(self._probability(found[1], found.start(1)))
                self.place = found.end()
                n_found += 1
                continue
            before = self.place
            self.place = _end(_BETWEEN, self.text, self.place)
            if self.accept(";"):
                return n_found
            if self.place == before:  # neither a comma nor a comment was in the way
                raise self.unexpected("a number or ';'")

    def skip_property(self) -> None:
        """Pass over the rest of a property: up to the semicolon, but one in a quoted text at its start is text."""
        if self.peek() == '"':
            self._quoted()
        end = self.text.find(";", self.place)
        if end < 0:
            raise self.error("found a property without a ';' behind it; expected properties to end")
        self.place = end + 1

    def _probability(self, digits: str, place: int) -> float:
        try:
            value = float(digits)
        except ValueError:
            raise self.error(f"found {shown(digits)}; expected a number", place=place) from None
        if not 0.0 <= value <= 1.0 + TOLERANCE:
            raise self.error(f"found {shown(digits)}; expected a probability, from 0 to 1", place=place)
        return value

    def _word_end(self) -> int:
        """Where an unquoted word that begins here ends; a lone slash belongs to it."""
        end = _end(_WORD, self.text, self.place)
        while self.text.startswith("/", end) and not self.text.startswith(("//", "/*"), end):
            end = _end(_WORD, self.text, end + 1)
        return end

    def _quoted(self) -> str | None:
        """Read a quoted text; None, and nothing is read, where it is not closed on its line."""
        pieces, place = [], self.place + 1
        while True:
            end = _end(_INSIDE, self.text, place)
            pieces.append(self.text[place:end])
            if self.text.startswith('"', end):
                self.place = end + 1
                return "".join(pieces)
            letter = self.text[end + 1 : end + 2]
            if not self.text.startswith("\\", end) or letter in ("", "\n"):
                return None
            pieces.append(_ESCAPES.get(letter, "\\" + letter))  # an unknown escape is a backslash
            place = end + 2


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    """Where a pattern that matches everywhere ends."""
    found = pattern.match(text, place)
    return found.end() if found else place


def shown(text: str) -> str:
    """Return a short excerpt of untrusted text for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def written(name: object) -> str:
    r"""A name or a level as it stands in a file: quoted where a reader might cut it or lose it.

    Examples
    --------
    >>> from tallybayes.models.network.io.bif_scanner import written
    >>> print(written("<5"), written("No change"), written('5" tall'), written(True))
    <5 "No change" "5\" tall" True
    """
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = "Replace what UTF-8 cannot encode: string.encode('utf-8', 'replace').decode()."
        raise DataError.wrong_type("a name or level", shown(text), "text without surrogates", hint) from error
    return text if _PLAIN.fullmatch(text) and text.isprintable() else f'"{text.translate(_WRITTEN)}"'
