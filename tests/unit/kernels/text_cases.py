"""Texts of the world, and ways to hand them to the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.kernels.text.text_counts import TokenRule

RULES = [
    TokenRule(),
    TokenRule(lowercase=False),
    TokenRule(ngram_range=(1, 3)),
    TokenRule(ngram_range=(2, 2)),
    TokenRule(characters=True, ngram_range=(1, 3)),
    TokenRule(characters=True, ngram_range=(4, 4), lowercase=False),
    TokenRule("sklearn"),
    TokenRule("sklearn", lowercase=False),
    TokenRule("sklearn", ngram_range=(1, 2)),
    TokenRule("sklearn", characters=True, ngram_range=(2, 3)),
]

TEXTS = [
    "",
    " ",
    "a",
    "Click to WIN win!!! 100% FREE_money now...",
    "Don't 'quote' o'clock '' rock'n'roll' l’eau x'9 9'x _'a a'_ ''a'b''",
    "naïve NAÏVE nai\u0308ve Ünïcode Straße ﬁn ǅ",
    "ΟΔΥΣΣΕΥΣ Σ ΑΣ' ΑΣ'Α Σ. ΑΣ\u00ad ΣΣ ΌΣΟΣ",
    "İSTANBUL Iğdır ISPARTA",
    "हिन्दी में नमस्ते দুনিয়া தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ગુજરાતી",
    "日本語のテキスト、カタカナ。漢 字 中文abc中文 〇々〆ヶ ｶﾀｶﾅ",
    "ภาษาไทย ที่นี่ ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ 1๒๓",
    "한국어 \u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 각\u11a8 가\u11a8",
    "العربية مُحَمَّد فارسی می‌خواهم עברית צה״ל ג׳ירפה",
    "Русский ёлка Е\u0308ЛКА Ελληνικά հայերեն ქართული አማርኛ ᏣᎳᎩ",
    "🎉🎉 👩‍👩‍👧 👍🏽 🇩🇪 ❤️ 1️⃣ ✔ ★ ©®™",
    "e\u0301\u0323 e\u0323\u0301 a\u0301\u0301 \u0301x 1\u0301 日\u0301本 🎉\u0301",
    "so\u00adft zero\u200bwidth jo\u200din no\u200cn \u2066bidi\u2069 \ufeffbom a\u034fb",
    "col·lega L·L ·a a· \u2019a a\u2019 a\u2019b a'\u0301b",
    "tab\tnew\nline\r\n  two   \u00a0nbsp\u3000wide\x1c\x1d\x85end",
    "nul\0byte\0\0 \x7f\x80",
    "\ud800lone\udfffsurrogates\ud83d",
    "Ⅷ ² ½ ⓐⒶ ① _ __ a_b _1",
    "K Å Ω ſ ẞ ꟼ 𝐀𝐁 𐐀𐐁 𞤀𞤁",
    "supercalifragilisticexpialidocious " * 3 + "sixteen_bytes_ab seventeen_bytesab fifteen_bytes_a",
    "x" * 63 + " " + "y" * 64 + " " + "z" * 65,
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 5,
    "It's " * 40,
]

BROKEN = [
    b"\xff",
    b"caf\xe9 na\xefve",
    b"over\xc0\xaflong \xc1\xbf \xe0\x80\xaf \xe0\x9f\xbf \xf0\x80\x80\xaf \xf0\x8f\xbf\xbf",
    b"sur\xed\xa0\x80ro\xed\xbf\xbfgate",
    b"cut\xe2\x82 \xe2 \xf0\x9f \xf0\x9f\x8e \xc3",
    b"big\xf4\x90\x80\x80er \xf5\x80\x80\x80 \xf8\x88\x80\x80\x80 \xfe",
    b"\x80\x81\xbfcontinuation\xbf\xbf\xbf\xbf",
    b"end\xe2\x82",
    b"\xf0\x9f\x8e\x89\xf0\x9f\x8e",
    b"a\xcc",
    b"\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf",
]


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def buffers(texts: list[Any], width: Any = np.int64, skipped: int = 0) -> tuple[Any, ...]:
    """Texts as Arrow has them, None where there is none."""
    parts = [b"" if text is None else encoded(text) for text in texts]
    offsets = np.cumsum([0, *map(len, parts)], dtype=width)
    data = np.frombuffer(b"".join(parts), np.uint8)
    if None not in texts and not skipped:
        return offsets, data, None, 0
    there = np.array([True] * skipped + [text is not None for text in texts], dtype=bool)
    return offsets, data, np.packbits(there, bitorder="little"), skipped
