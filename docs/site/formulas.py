"""Formulas in plain text as MathML, which browsers typeset without scripts or fonts from elsewhere.

The notation is that of the handbook: ``θ_k = (n_k + α) / (n + K·α)``, ``Σ_c π_c``, ``Σ⁻¹``, ``x̄``, ``∫ … dθ``. A slash
without spaces divides the factors beside it, a slash between spaces the products beside it. Five spaces are a gap.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import NamedTuple

FUNCTIONS = {"log", "exp", "min", "max", "argmax", "argmin", "diag", "tr"}
SHORT_WORDS = {"an", "as", "at", "be", "by", "if", "in", "is", "it", "no", "of", "on", "or", "to"}
RELATIONS = "=∝→≤≥<>≈≠∈≡"
OPENING, CLOSING = "([{", ")]}"
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᵃᵇⁿˣᵏ", "0123456789+−Tabnxk", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₜₖᵢⱼₙ", "0123456789+−tkijn", strict=True))
ACCENTS = {"\u0304": "¯", "\u0302": "^", "\u0303": "~"}
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:,\d{3})*(?:\.\d+)?|[½¼¾⅓])"
    r"|(?P<word>[A-Za-z]{2,}(?:['’][a-z]*|(?:-[a-z]+)+)?|[A-Z]-[a-z]{2,})"
    r"|(?P<letter>[^\W\d_¹²³⁰-ₜˣᵀ-ᵿ][\u0300-\u036f]?)"
    rf"|(?P<raised>[{''.join(RAISED)}]+)|(?P<lowered>[{''.join(LOWERED)}]+)|(?P<other>.)"
)

# A letter of its own with an index or exponent, of up to six characters or in parentheses.
INLINE = re.compile(
    r"(?<![\w\\.`/])([^\W\d_][\u0300-\u036f]?′?)([_^])(?:\(([^()\s][^()]*)\)|(−?[A-Za-z0-9α-ωΑ-Ω½]{1,6}′?))(?![\w_(])"
)


class Piece(NamedTuple):
    """A part of a row: its MathML, its kind, and whether a space stood before it."""

    kind: str  # "item", "word", "operator", "sum", "relation", "bar", "comma", "slash" or "gap"
    code: str
    spaced: bool = False
    group: str = ""  # the inside of parentheses, for fractions and exponents


def block(text: str) -> str:
    """Return a displayed block of formulas, one line each, aligned at their first relations where all have one."""
    rows = [_Parser(line).pieces() for line in text.split("\n") if line.strip()]
    splits = [_relation(row) for row in rows]
    if len(rows) == 1 or None in splits:
        lines = "".join(f"<mtr><mtd>{_row(row)}</mtd></mtr>" for row in rows)
    else:
        lines = "".join(
            f"<mtr><mtd>{_row(row[:at])}</mtd><mtd>{_row(row[at:])}</mtd></mtr>"
            for row, at in zip(rows, splits, strict=True)
        )
    words = escape(" ".join(text.split()), quote=True)
    body = _row(rows[0]) if len(rows) == 1 else f'<mtable displaystyle="true">{lines}</mtable>'
    return f'<div class="formula"><math display="block" alttext="{words}">{body}</math></div>'


def inline(text: str) -> str:
    """Return a line of prose in which letters with indices and exponents, such as θ_k and x^2, have real ones."""

    def script(match: re.Match[str]) -> str:
        tag = "sub" if match[2] == "_" else "sup"
        return f"<i>{match[1]}</i><{tag}>{match[3] or match[4]}</{tag}>"

    return INLINE.sub(script, text)


def _relation(row: list[Piece]) -> int | None:
    """Return the index of the first relation; None if a gap comes first."""
    first = next((index for index, piece in enumerate(row) if piece.kind in ("relation", "gap")), None)
    return first if first is not None and row[first].kind == "relation" else None


def _row(pieces: list[Piece]) -> str:
    """Return the MathML of a row with its fractions."""
    pieces = list(pieces)
    while (at := next((index for index, piece in enumerate(pieces) if piece.kind == "slash"), None)) is not None:
        loose = pieces[at].spaced
        start, end = _before(pieces, at, loose=loose), _after(pieces, at, loose=loose)
        top, bottom = _inside(pieces[start:at]), _inside(pieces[at + 1 : end])
        spaced = start < at and pieces[start].spaced
        pieces[start:end] = [Piece("item", f"<mfrac><mrow>{top}</mrow><mrow>{bottom}</mrow></mfrac>", spaced)]
    return "".join(_spaced(pieces))


def _spaced(pieces: list[Piece]) -> list[str]:
    """Return the codes, with the spaces between words and what is not an operator, and between factors."""
    codes: list[str] = []
    for index, piece in enumerate(pieces):
        last = pieces[index - 1] if index else None
        kinds = (last.kind if last else "", piece.kind)
        beside = all(kind in ("item", "word", "function", "sum") for kind in kinds)
        if beside and (piece.spaced or kinds[1] == "function"):
            width = ".3em" if "word" in kinds else ".17em"
            codes.append(f'<mspace width="{width}"/>')
        codes.append(piece.code)
    return codes


def _before(pieces: list[Piece], at: int, *, loose: bool) -> int:
    """Return where the numerator of a slash begins."""
    start = at
    while start:
        piece = pieces[start - 1]
        if piece.kind not in ("item", "product") or (start < at and not loose and pieces[start].spaced):
            break
        start -= 1
    return start + (start < at and pieces[start].kind == "product")


def _after(pieces: list[Piece], at: int, *, loose: bool) -> int:
    """Return where the denominator of a slash ends: before a differential, an operator or a word."""
    end = at + 1
    while end < len(pieces):
        piece = pieces[end]
        tight = end > at + 1 and not loose and (piece.spaced or piece.kind == "product")
        if piece.kind not in ("item", "product", *(("sum",) if loose else ())) or tight:
            break
        if end > at + 1 and piece.code == "<mi>d</mi>":
            break
        end += 1
    return end


def _inside(pieces: list[Piece]) -> str:
    """Return a numerator or denominator; without its parentheses if it is one group."""
    return pieces[0].group if len(pieces) == 1 and pieces[0].group else _row(pieces)


class _Parser:
    """Recursive parser of one line."""

    def __init__(self, line: str) -> None:
        self.tokens = [(str(match.lastgroup), match[0]) for match in TOKEN.finditer(line.strip())]
        self.at = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """Return the kind and the text of a token ahead; empty strings at the end."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("", "")

    def pieces(self, closing: str = "") -> list[Piece]:
        """Return the pieces up to a closing bracket or the end."""
        found: list[Piece] = []
        spaced = False
        while self.at < len(self.tokens) and (not closing or self.peek()[1] != closing):
            kind, text = self.peek()
            if kind == "space":
                self.at += 1
                spaced = True
                if len(text) >= 5 or (len(text) >= 2 and found and found[-1].kind == "comma"):
                    found.append(Piece("gap", '<mspace width="2em"/>'))
                continue
            found += self.piece(kind, text, spaced=spaced)
            spaced = False
        return found

    def piece(self, kind: str, text: str, *, spaced: bool) -> list[Piece]:
        """Return the next piece with its subscripts and superscripts, or the letters of a product."""
        if kind == "word":
            return self.word(text, spaced=spaced)
        if kind == "letter" and text == "a" and self.peek(1)[0] == "space" and self.is_text(2):
            self.at += 1
            return [Piece("word", "<mtext>a</mtext>", spaced)]
        if kind == "number":
            self.at += 1
            return [Piece("item", self.scripts(f"<mn>{text}</mn>"), spaced)]
        if kind == "letter" and text in "ΣΠ∫" and not self.is_matrix():
            return [self.sum(text, spaced=spaced)]
        if kind == "letter":
            self.at += 1
            return [Piece("item", self.scripts(_identifier(text)), spaced)]
        if text in OPENING:
            return [self.group(text, spaced=spaced)]
        return [self.operator(text, spaced=spaced)]

    def is_text(self, ahead: int) -> bool:
        """Return whether the token ahead is a word of English."""
        kind, text = self.peek(ahead)
        return kind == "word" and text not in FUNCTIONS and (len(text) > 2 or text in SHORT_WORDS)

    def is_matrix(self) -> bool:
        """Return whether a capital sigma is a covariance: an exponent, a bracket, a bar or the end follows."""
        ahead = 1
        while self.peek(ahead)[1] == "_" or (ahead > 1 and self.peek(ahead - 1)[1] == "_"):
            ahead += 1
        kind, text = self.peek(ahead)
        return self.peek()[1] != "∫" and (kind in ("", "raised") or text in ")]|,′+−=")

    def word(self, text: str, *, spaced: bool) -> list[Piece]:
        """Return a function, a word of English, or the letters of a product such as ab."""
        self.at += 1
        if text in FUNCTIONS:
            return [Piece("function", self.scripts(f"<mi>{text}</mi>"), spaced)]
        if len(text) == 2 and text not in SHORT_WORDS and text.islower():
            return [
                Piece("item", f"<mi>{text[0]}</mi>", spaced),
                Piece("item", self.scripts(f"<mi>{text[1]}</mi>")),
            ]
        code = self.scripts(f"<mtext>{escape(text)}</mtext>")
        beside = self.peek()[0] == "space" or self.peek()[1] not in ("(", "[")
        return [Piece("word" if beside and code.startswith("<mtext") else "item", code, spaced)]

    def sum(self, text: str, *, spaced: bool) -> Piece:
        """Return a sum, product or integral with the index below it."""
        self.at += 1
        code = f"<mo>{ {'Σ': '∑', 'Π': '∏'}.get(text, text) }</mo>"
        if self.peek()[1] == "_":
            self.at += 1
            code = f"<munder>{code}<mrow>{self.argument()}</mrow></munder>"
        return Piece("sum", code, spaced)

    def group(self, text: str, *, spaced: bool) -> Piece:
        """Return a group in brackets."""
        self.at += 1
        closing = CLOSING[OPENING.index(text)]
        inside = _row(self.pieces(closing))
        self.at += 1
        fence = "<mo>" if re.search("<mfrac|<munder", inside) else '<mo stretchy="false">'
        code = f"<mrow>{fence}{text}</mo>{inside}{fence}{closing}</mo></mrow>"
        scripted = self.scripts(code)
        return Piece("item", scripted, spaced, inside if scripted == code and text == "(" else "")

    def operator(self, text: str, *, spaced: bool) -> Piece:
        """Return an operator."""
        self.at += 1
        after = self.peek()[0] == "space"
        shown = escape({"-": "−", "*": "·"}.get(text, text))
        if text in "|‖":
            if spaced and after:
                return Piece("bar", f'<mo lspace=".28em" rspace=".28em" stretchy="false">{text}</mo>')
            return Piece("item", self.scripts(f'<mo stretchy="false" lspace="0" rspace="0">{text}</mo>'), spaced)
        if text == "/":
            return Piece("slash", "", spaced and after)
        if text in RELATIONS:
            return Piece("relation", f"<mo>{shown}</mo>")
        if text in "·×":
            return Piece("product", f"<mo>{text}</mo>", spaced)
        if text in "∂√!∞":
            return self.prefix(text, spaced=spaced)
        return Piece("comma" if text in ",;" else "operator", f"<mo>{shown}</mo>", spaced)

    def prefix(self, text: str, *, spaced: bool) -> Piece:
        """Return a root with its argument, or a symbol that belongs to the factor beside it."""
        if text == "√":
            return Piece("item", f"<msqrt>{self.argument()}</msqrt>", spaced)
        return Piece("item", f"<mi>{text}</mi>" if text in "∂∞" else f"<mo>{text}</mo>", spaced)

    def argument(self) -> str:
        """Return what follows a caret, an underscore or a root: a group, a word, a number or a letter."""
        minus = ""
        if self.peek()[1] in "−-" and self.peek()[1]:
            self.at += 1
            minus = "<mo>−</mo>"
        kind, text = self.peek()
        if text in ("(", "{", "["):
            group = self.group(text, spaced=False)
            bare = group.group if text == "(" and not minus else re.sub(r"<mo[^>]*>[{}]</mo>", "", group.code)
            return minus + (bare or group.code)
        self.at += 1
        if kind == "word":
            return f"{minus}<mi>{'</mi><mi>'.join(text) if len(text) < 4 else text}</mi>"
        return minus + (f"<mn>{text}</mn>" if kind == "number" else _identifier(text))

    def scripts(self, base: str) -> str:
        """Return a base with the subscripts, primes and superscripts that follow it."""
        below = above = ""
        while True:
            kind, text = self.peek()
            if text == "_" or kind == "lowered":
                self.at += 1
                below += self.argument() if text == "_" else _script(text, LOWERED)
            elif text in ("^", "′") or kind == "raised":
                self.at += 1
                above += "<mo>′</mo>" if text == "′" else self.argument() if text == "^" else _script(text, RAISED)
            else:
                break
        if below and above:
            return f"<msubsup>{base}<mrow>{below}</mrow><mrow>{above}</mrow></msubsup>"
        tag, script = ("msub", below) if below else ("msup", above)
        return f"<{tag}>{base}<mrow>{script}</mrow></{tag}>" if script else base


def _identifier(text: str) -> str:
    """Return a letter, with its accent."""
    letter, accent = text[0], text[1:]
    if not accent:
        letter, *rest = unicodedata.normalize("NFD", text)
        accent = "".join(rest)
    code = f"<mi>{escape(letter)}</mi>"
    return (
        f'<mover accent="true">{code}<mo>{ACCENTS[accent]}</mo></mover>'
        if accent in ACCENTS
        else f"<mi>{escape(text)}</mi>"
    )


def _script(text: str, plain: dict[str, str]) -> str:
    """Return a run of raised or lowered characters."""
    shown = "".join(plain[character] for character in text)
    return "".join(
        f"<mn>{part}</mn>" if part.isdigit() else f"<mo>{part}</mo>" if part in "+−" else f"<mi>{part}</mi>"
        for part in re.findall(r"\d+|\D", shown)
    )
