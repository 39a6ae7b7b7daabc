"""The table of Unicode against what the running Python knows."""

import unicodedata

import numpy as np
import pytest

from tallybayes.kernels.reference.text_counts import composed, lower
from tallybayes.kernels.text.unicode_properties import (
    CASE_IGNORABLE,
    CASED,
    DIGIT,
    IGNORED,
    JOINER,
    LETTER,
    LONE,
    MARK,
    PICTURE,
    SPACE,
    VERSION,
    WORD,
    unicode,
)

# Code points that this Python and the table both have.
KNOWN = [code for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]


@pytest.fixture(scope="module")
def properties():
    return unicode().properties[unicode().records()]


def differing(found, expected):
    return [hex(code) for code, one, other in zip(KNOWN, found, expected, strict=True) if one != other]


def test_the_version_is_one_of_unicode():
    assert tuple(map(int, VERSION.split("."))) >= (15, 1, 0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("bit", "say"), [(WORD, lambda one: one.isalnum() or one == "_"), (SPACE, str.isspace)])
def test_what_python_s_patterns_ask(bit, say, properties):
    assert not differing((properties[KNOWN] & bit != 0).tolist(), [say(chr(code)) for code in KNOWN])


def test_lower_case():
    distance = unicode().lower[unicode().records()]
    assert not differing(
        (np.array(KNOWN) + distance[KNOWN]).tolist(),
        [ord(chr(code).lower()[0]) if code != 0x130 else code for code in KNOWN],
    )
    text = "".join(map(chr, KNOWN))
    assert lower(text) == text.lower()


def test_what_sigmas_depend_on(properties):
    after = [(chr(code) + "Σ").lower()[-1] == "ς" for code in KNOWN]
    assert not differing((properties[KNOWN] & CASED != 0).tolist(), after)
    over = [("a" + chr(code) + "Σ").lower()[-1] == "ς" for code in KNOWN]
    assert not differing((properties[KNOWN] & (CASED | CASE_IGNORABLE) != 0).tolist(), over)


def test_classes_are_by_category(properties):
    expected = {LETTER: "L", DIGIT: "N", MARK: "M", LONE: "LN", PICTURE: "S", JOINER: "P", IGNORED: "CM"}
    for code in KNOWN:
        kind = int(properties[code]) & 7
        if kind and chr(code) != "_":
            assert unicodedata.category(chr(code))[0] in expected[kind], hex(code)
    for kind, some in {
        LETTER: "aÉßжא한Ǆ",
        DIGIT: "0_²Ⅷ๓",
        MARK: "\u0301\u093f\u0e35",
        LONE: "漢かカｶーกກកက々〇",
        PICTURE: "🎉❤✔★🇩⌚",
        JOINER: "'’·׳״",
        IGNORED: "\u00ad\u200d\u200c\ufeff\ufe0f\u2066",
    }.items():
        assert {int(properties[ord(one)]) & 7 for one in some} == {kind}
    assert not any(int(properties[ord(one)]) & 7 for one in " .-,\u200b\ufffd\ud800©€")


def test_pairs_are_those_of_the_normal_form():
    found = {(first, second): whole for first, second, whole in unicode().pairs.T.tolist()}
    for (first, second), whole in found.items():
        if unicodedata.category(chr(whole)) != "Cn":
            assert unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(whole)
    for code in KNOWN:
        if not 0xAC00 <= code <= 0xD7A3:
            parts = unicodedata.normalize("NFD", chr(code))
            if len(parts) > 1 and unicodedata.normalize("NFC", parts) == chr(code):
                assert composed(parts) == chr(code)


def test_hangul():
    every = "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert composed(unicodedata.normalize("NFD", every)) == every
