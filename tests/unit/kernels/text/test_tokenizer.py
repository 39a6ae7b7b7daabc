"""Tokens: the rule, on the world's scripts and on bytes that are no text; scikit-learn's, beside its own."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.kernels import active
from tallybayes.kernels.reference import sums as reference_sums
from tallybayes.kernels.reference.text_counts import tokens as reference_tokens
from tallybayes.kernels.text.text_counts import TokenRule
from tests.examples import examples
from tests.unit.kernels.text_cases import BROKEN, RULES, TEXTS, encoded

EXPECTED = {
    "Click to WIN win!!! 100% FREE_money": "click to win win 100 free_money",
    "Don't 'quote' o'clock rock'n'roll' l’eau x'9 9'x": "don't quote o'clock rock'n'roll l'eau x 9 9 x",
    "naïve NAÏVE nai\u0308ve Straße ﬁn": "naïve naïve naïve straße ﬁn",
    "ΟΔΥΣΣΕΥΣ ΑΣ'Α": "οδυσσευς ασ'α",
    "हिन्दी में": "हिन्दी में",
    "தமிழ் తెలుగు": "தமிழ் తెలుగు",
    "日本語のテ、漢 中文abc中": "日本 本語 語の のテ 漢 中文 abc 中",
    "ที่นี่": "ที่นี่",
    "ภาษา": "ภา าษ ษา",
    "한국어 \u1112\u1161\u11ab": "한국어 한",
    "می‌خواهم צה״ל": "میخواهم צה״ל",
    "Е\u0308ЛКА Ёлка": "ёлка ёлка",
    "🎉🎉 👩‍👧 ❤️ 1️⃣ x™": "🎉 🎉 👩 👧 ❤ 1\u20e3 x",
    "so\u00adft zero\u200bwidth": "soft zero width",
    "col·lega ·a": "col·lega a",
    "\u0301x 1\u0301": "x 1\u0301",
    "Ⅷ ² ½": "ⅷ ² ½",
}


@pytest.fixture(params=["compiled", "reference"], autouse=True)
def implementation(request, monkeypatch):
    if request.param == "reference":
        monkeypatch.setattr(active, "module", reference_sums)
    elif active.module is reference_sums:
        pytest.skip("nothing was compiled")


@pytest.mark.parametrize("text", EXPECTED, ids=ascii)
def test_the_rule(text):
    assert tb.tokenize(text) == EXPECTED[text].split(" ")
    assert tb.tokenize(text.encode()) == EXPECTED[text].split(" ")


def test_bytes_that_are_no_text_separate_words():
    assert tb.tokenize(b"caf\xe9 na\xefve") == ["caf", "na", "ve"]
    assert tb.tokenize(b"over\xc0\xaflong sur\xed\xa0\x80ro") == ["over", "long", "sur", "ro"]
    assert tb.tokenize("\ud800lone\udfff") == ["lone"]
    assert tb.tokenize(b"a\xff\xe2\x82b", characters=True, ngram_range=(2, 2)) == [
        "a\ufffd", "\ufffd\ufffd", "\ufffd\ufffd", "\ufffdb",
    ]  # fmt: skip
    for text in BROKEN:  # whatever comes of them can be written
        assert all(token.encode().decode() == token for token in tb.tokenize(text))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_compiled_and_reference_agree(rule):
    options = {
        "rule": rule.name,
        "lowercase": rule.lowercase,
        "ngram_range": rule.ngram_range,
        "characters": rule.characters,
    }
    for text in [*TEXTS, *BROKEN]:
        assert tb.tokenize(text, **options) == [token.decode() for token in reference_tokens(encoded(text), rule)]


@pytest.mark.slow
def test_huge_words():
    assert tb.tokenize("x" * 10**6 + " y") == ["x" * 10**6, "y"]
    assert tb.tokenize("É" * 10**6) == ["é" * 10**6]
    assert len(tb.tokenize("漢" * 10**5)) == 10**5 - 1
    assert tb.tokenize("\u0301" * 10**5) == []
    assert tb.tokenize("Σ'" * 10**5)[0] == "σ'" * (10**5 - 1) + "ς"


def test_characters():
    assert tb.tokenize("a \t\n b", characters=True, ngram_range=(1, 2)) == ["a", " ", "b", "a ", " b"]
    assert tb.tokenize("a\tb", characters=True, ngram_range=(3, 9)) == ["a b"]
    assert tb.tokenize("a\tb", rule="sklearn", characters=True, ngram_range=(3, 3)) == ["a\tb"]
    assert tb.tokenize("", characters=True) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "porter"},
        {"ngram_range": (2, 1)},
        {"ngram_range": (0, 1)},
        {"ngram_range": 2},
        {"ngram_range": (1, 65)},
        {"lowercase": "no"},
        {"ngram_range": (1, 1.5)},
        {"characters": None},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(DataError, match="expected"):
        tb.tokenize("text", **wrong)


def test_what_is_no_text_is_refused():
    with pytest.raises(DataError, match="the text is of type list; expected str or bytes"):
        tb.tokenize(["text"])


SKLEARN = [(1, 1), (1, 3), (2, 2)]


def sklearn_tokens(text, lowercase, ngram_range, characters):
    analyzer = "char" if characters else "word"
    return CountVectorizer(lowercase=lowercase, ngram_range=ngram_range, analyzer=analyzer).build_analyzer()(text)


# Unassigned code points may be letters to one version of Unicode and not to another; lone surrogates are no UTF-8.
characters = st.characters(exclude_categories=("Cs", "Cn"))
scripts = st.sampled_from("".join(TEXTS).encode("utf-8", "ignore").decode())
texts = st.text(st.one_of(characters, scripts, st.sampled_from("aZ09_' \n\tΣσİé")), max_size=80)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("by_character", [False, True])
@examples(200)
@given(text=texts, ngram_range=st.sampled_from(SKLEARN), lowercase=st.booleans())
def test_scikit_learn_s_rule_is_scikit_learn_s(by_character, text, ngram_range, lowercase):
    found = tb.tokenize(text, rule="sklearn", ngram_range=ngram_range, lowercase=lowercase, characters=by_character)
    assert found == sklearn_tokens(text, lowercase, ngram_range, by_character)


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_scikit_learn_s_rule_on_the_world_s_scripts(text):
    for ngram_range in SKLEARN:
        assert tb.tokenize(text, rule="sklearn", ngram_range=ngram_range) == sklearn_tokens(
            text, True, ngram_range, False
        )
        if text.isprintable() or not any(unicodedata.category(one) == "Cs" for one in text):
            assert tb.tokenize(text, rule="sklearn", ngram_range=ngram_range, characters=True) == sklearn_tokens(
                text, True, ngram_range, True
            )


@pytest.mark.slow_after(1)
@examples(300)
@given(text=st.one_of(texts.map(str.encode), st.binary(max_size=80), st.text(max_size=80)), rule=st.sampled_from(RULES))
def test_arbitrary_text(text, rule):
    found = tb.tokenize(
        text, rule=rule.name, lowercase=rule.lowercase, ngram_range=rule.ngram_range, characters=rule.characters
    )
    assert found == [token.decode() for token in reference_tokens(encoded(text), rule)]


@pytest.mark.slow_after(1)
def test_neither_scipy_nor_scikit_learn_is_imported():
    import subprocess

    code = "import sys, tallybayes as tb; tb.tokenize('a b'); print({'scipy', 'sklearn', 'pyarrow'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_rules_are_values():
    assert TokenRule(ngram_range=[1, 2]) == TokenRule(ngram_range=(1, 2))
    assert hash(TokenRule()) == hash(TokenRule("words"))
