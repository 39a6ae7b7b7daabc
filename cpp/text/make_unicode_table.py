"""Writes the table of Unicode that tokens are made by, ``src/tallybayes/kernels/text/unicode_table.py``.

What the running Python knows of every code point, packed: run it under the newest one. Both kernels read the table.
"""

import base64
import re
import struct
import sys
import unicodedata
import zlib
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src" / "tallybayes" / "kernels" / "unicode_table.py"
# Scripts in which words are not separated by spaces, by the names of their letters.
HAN = "CJK UNIFIED IDEOGRAPH|CJK COMPATIBILITY IDEOGRAPH|(VERTICAL )?IDEOGRAPHIC|MASU MARK"
DENSE = re.compile(rf"(?:{HAN}|HIRAGANA|(HALFWIDTH )?KATAKANA|THAI|LAO|KHMER|MYANMAR)\b")
PICTURES = [(0x2300, 0x23FF), (0x2600, 0x27BF), (0x2B00, 0x2BFF), (0x1F000, 0x1FAFF)]
JOINERS = "'’·׳״"
ZERO_WIDTH_SPACE = "\u200b"
SELECTORS = [(0x34F, 0x34F), (0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)]
SEPARATOR, LETTER, DIGIT, MARK, LONE, PICTURE, JOINER, IGNORED = range(8)


def class_of(code: int, character: str) -> int:
    """What a code point is to a word."""
    category = unicodedata.category(character)
    if any(low <= code <= high for low, high in SELECTORS) or (category == "Cf" and character != ZERO_WIDTH_SPACE):
        return IGNORED
    if category[0] in "LN" and DENSE.match(unicodedata.name(character, "")) and category != "Nd":
        return LONE
    if category[0] in "LMN":
        return {"L": LETTER, "M": MARK, "N": DIGIT}[category[0]]
    if category == "So" and any(low <= code <= high for low, high in PICTURES):
        return PICTURE
    return JOINER if character in JOINERS else DIGIT if character == "_" else SEPARATOR


def record_of(code: int) -> tuple[int, int]:
    """Properties as bits, and how far away the lower case is."""
    if 0xD800 <= code < 0xE000:
        return SEPARATOR, 0
    character = chr(code)
    lower = character.lower()
    assert len(lower) == 1 or (lower == "i̇" and code == 0x130), character
    bits = class_of(code, character)
    bits |= (character.isalnum() or character == "_") << 3 | character.isspace() << 4
    cased = (character + "Σ").lower().endswith("ς")
    bits |= cased << 6 | (not cased and ("a" + character + "Σ").lower().endswith("ς")) << 5
    return bits, ord(lower[0]) - code if code != 0x130 else 0


def pairs() -> list[tuple[int, int, int]]:
    """Letters and marks that are written as one."""
    found = []
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", chr(code)) == chr(code):
            found.append((int(parts[0], 16), int(parts[1], 16), code))
    return sorted(found)


def main() -> None:
    """Write the module."""
    known = [record_of(code) for code in range(0x110000)]
    records = sorted(set(known))
    assert len(records) < 256, len(records)
    for code, (bits, delta) in enumerate(known):  # same properties in lower case
        assert delta == 0 or known[code + delta][0] & 31 == bits & 31, hex(code)
    composed = pairs()
    for first, second, whole in composed:
        assert known[first][0] & 31 == known[whole][0] & 31, hex(whole)
        assert known[second][0] & 7 == MARK, hex(whole)
    number = {record: place for place, record in enumerate(records)}
    cells = bytes(number[record] for record in known)
    every = [cells[start : start + 256] for start in range(0, len(cells), 256)]
    blocks = sorted(set(every))
    assert len(blocks) < 256, len(blocks)
    packed = struct.pack("<3I", len(records), len(blocks), len(composed))
    packed += b"".join(struct.pack("<2i", *record) for record in records)
    packed += bytes(blocks.index(block) for block in every) + b"".join(blocks)
    packed += b"".join(struct.pack(f"<{len(composed)}I", *column) for column in zip(*composed, strict=True))
    text = base64.b85encode(zlib.compress(packed, 9)).decode()
    lines = [text[start : start + 110] for start in range(0, len(text), 110)]
    module = [
        '"""What Unicode says of every code point, packed; written by cpp/text/make_unicode_table.py."""\n',
        f'VERSION = "{unicodedata.unidata_version}"',
        "PACKED = (",
        *(f'    "{line}"' for line in lines),
        ")",
    ]
    TABLE.write_text("\n".join(module) + "\n", encoding="utf-8")
    sys.stderr.write(f"{len(records)} records, {len(blocks)} blocks, {len(composed)} pairs, {len(text)} characters\n")


main()
