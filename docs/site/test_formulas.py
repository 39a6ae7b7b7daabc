"""Formulas in plain text become MathML."""

import re
import xml.etree.ElementTree as ElementTree

import formulas
import pages
import pytest

DISPLAYED = [
    (place, match)
    for place, origin in pages.origins().items()
    for part in pages.FENCE.split(origin.read_text(encoding="utf-8"))[::2]
    for match in pages.FORMULA.findall(part)
]


def words(text):
    """The text of a formula in brackets of its elements, without rows and attributes."""
    code = re.sub(r"<mspace[^>]*>|</?mrow>| \w+=\"[^\"]*\"", "", formulas.block(text))
    return re.search("<math>(.*)</math>", code)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", "<mfrac><mi>a</mi><mi>b</mi></mfrac>"),
        ("c·a/b", "<mfrac><mi>c</mi><mo>·</mo><mi>a</mi><mi>b</mi></mfrac>"),
        ("c + a b / 2", "<mi>c</mi><mo>+</mo><mfrac><mi>a</mi><mi>b</mi><mn>2</mn></mfrac>"),
        ("Σ a / b", "<mo>∑</mo><mfrac><mi>a</mi><mi>b</mi></mfrac>"),
        ("∫ a / b dθ", "<mo>∫</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mi>d</mi><mi>θ</mi>"),
        ("(a − 1)/2", "<mfrac><mi>a</mi><mo>−</mo><mn>1</mn><mn>2</mn></mfrac>"),
        ("x²", "<msup><mi>x</mi><mn>2</mn></msup>"),
        ("α′_k", "<msubsup><mi>α</mi><mi>k</mi><mo>′</mo></msubsup>"),
        ("sₜ₊₁", "<msub><mi>s</mi><mi>t</mi><mo>+</mo><mn>1</mn></msub>"),
        ("θ^(n − s)", "<msup><mi>θ</mi><mi>n</mi><mo>−</mo><mi>s</mi></msup>"),
        ("Σ⁻¹", "<msup><mi>Σ</mi><mo>−</mo><mn>1</mn></msup>"),
        ("Σ_c x", "<munder><mo>∑</mo><mi>c</mi></munder><mi>x</mi>"),
        ("x̄", "<mover><mi>x</mi><mo>¯</mo></mover>"),
        ("log p(class)", "<mi>log</mi><mi>p</mi><mo>(</mo><mtext>class</mtext><mo>)</mo>"),
        ("a term", "<mtext>a</mtext><mtext>term</mtext>"),
        ("ab", "<mi>a</mi><mi>b</mi>"),
    ],
)
def test_elements(text, expected):
    assert words(text) == expected


def test_lines_are_aligned_at_their_first_relations():
    assert formulas.block("a = b\n∝ c").count("<mtd>") == 4
    assert formulas.block("a = b\nc").count("<mtd>") == 2


@pytest.mark.parametrize("place", sorted({place for place, _ in DISPLAYED}))
def test_every_formula_of_the_pages_is_sound(place):
    blocks = [match for page, match in DISPLAYED if page == place]
    for block in blocks:
        code = pages.typeset(block, "A sentence.")
        assert ElementTree.fromstring(code.strip()).find("math") is not None


def test_letters_of_the_prose_have_indices():
    assert formulas.inline("x_j and θ^(n − s), S′_T") == (
        "<i>x</i><sub>j</sub> and <i>θ</i><sup>n − s</sup>, <i>S′</i><sub>T</sub>"
    )
    for text in ("predict_proba", "fit_X", "tb.x_y", "a_b_c", "min_x"):
        assert formulas.inline(text) == text
