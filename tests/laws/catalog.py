"""Every type of the package that has laws to keep, and how to draw examples of it."""

import numpy as np
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.testing import WeightedRows
from tallybayes.testing.strategies import cells, columns, labels, numbers, weights

FAMILIES = {
    repr(family): family
    for family in (
        tb.Bernoulli(),
        tb.Binomial(7),
        tb.Categorical(),
        tb.Categorical(levels=("a", "b", "unseen")),
        tb.Categorical(levels=(3, -1, 0)),
        tb.Multinomial(),
        tb.DirichletMultinomial(),
        tb.Poisson(),
        tb.Gaussian(),
        tb.LogNormal(),
        tb.Binned((-5, 0, 0.5, 40, 1e9)),
        tb.Binned((None, 0, 0.5, 40, None)),
        tb.TiedGaussian(),
        tb.SphericalGaussian(),
        tb.TiedSphericalGaussian(),
        tb.MultivariateGaussian(),
        tb.TiedMultivariateGaussian(),
        tb.LinearGaussian(),
        tb.LinearGaussianThroughOrigin(),
        tb.ConditionalLinearGaussian(),
    )
}


@st.composite
def counts(draw, given, sizes):
    cell = st.integers(0, 9)
    n = int(np.prod(given)) * sum(sizes)
    return tb.Counts(np.reshape(draw(st.lists(cell, min_size=n, max_size=n)), (*given, sum(sizes))), sizes)


@st.composite
def totals(draw, given, n_columns):
    # Bernoulli trials and successes: totals never above the weight, so that each family can read them.
    n = int(np.prod(given)) * n_columns
    trials = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=float)
    hits = np.floor(trials * np.array(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))))
    shape = (*given, n_columns)
    return tb.Totals(trials.reshape(shape), hits.reshape(shape), -np.log1p(hits.reshape(shape)))


@st.composite
def moments(draw, given, n_columns, full=False):
    groups = [()] if not given else list(np.ndindex(given))
    parts = []
    for _ in groups:
        n = draw(st.integers(0, 4))
        cells = draw(st.lists(numbers(), min_size=n * n_columns, max_size=n * n_columns))
        parts.append(tb.Moments.of(np.reshape(np.array(cells, dtype=float), (n, n_columns)), full=full))
    moved = [part.reshape_groups((1,)) for part in parts]
    place = np.arange(len(groups))
    spread = [part.take(0, np.where(place == number, 0, -1)) for number, part in enumerate(moved)]
    return sum(spread).reshape_groups(given)


GIVEN = st.sampled_from([(), (1,), (2,), (2, 2)])

# For every statistics type: a strategy of three of a kind, and that of no rows.
STATISTICS = {
    "Counts": st.tuples(GIVEN, st.lists(st.integers(0, 4), min_size=1, max_size=3)).flatmap(
        lambda shape: st.tuples(
            *[counts(*shape)] * 3, st.just(tb.Counts(np.zeros((*shape[0], sum(shape[1]))), shape[1]))
        )
    ),
    "Totals": st.tuples(GIVEN, st.integers(1, 3)).flatmap(
        lambda shape: st.tuples(
            *[totals(*shape)] * 3, st.just(tb.Totals(np.zeros((*shape[0], 1)), np.zeros((*shape[0], shape[1]))))
        )
    ),
    "Moments": st.tuples(GIVEN, st.integers(1, 3)).flatmap(
        lambda shape: st.tuples(*[moments(*shape)] * 3, st.just(tb.Moments.zeros(*shape)))
    ),
    "Moments, full": st.tuples(GIVEN, st.integers(1, 3)).flatmap(
        lambda shape: st.tuples(*[moments(*shape, full=True)] * 3, st.just(tb.Moments.zeros(*shape, full=True)))
    ),
}

MODEL = (
    tb.Factor("kind", (), tb.Categorical()),
    tb.Factor(("color", "shape"), "kind", tb.Categorical()),
    tb.Factor("grade", ("kind", "color"), tb.Categorical(levels=("low", "high"))),
    tb.Factor(("length", "width"), "kind", tb.Gaussian()),
    tb.Factor("width", ("color", "kind"), tb.TiedGaussian()),
    tb.Factor(("depth", "height"), "kind", tb.MultivariateGaussian()),
    tb.Factor(("height", "depth"), ("kind", "shape"), tb.LinearGaussian()),
    tb.Factor("spots", "kind", tb.Poisson()),
    tb.Factor(("spots", "edges"), (), tb.Multinomial()),
    tb.Factor("ripe", "shape", tb.Bernoulli()),
    tb.Factor("hits", (), tb.Binomial(3)),
    tb.Factor(("length", "spots"), ("kind", "shape"), tb.Binned((-1, 0, 2))),
    tb.Factor("price", ("shape", "kind"), tb.LogNormal()),
    tb.Factor(("length (present)", "color (present)"), "shape", tb.Bernoulli()),
    tb.Factor("note", "kind", tb.Text()),
    tb.Factor("title", ("kind", "shape"), tb.Text(tb.Bernoulli(), ngram_range=(1, 2))),
    tb.Factor("label", (), tb.Text(tb.Poisson(), hash_bits=3, binary=True)),
)


def texts(n):
    """A column of text: a few words, none, or missing."""
    word = st.sampled_from(["win", "Win", "ὀδός", "naïve", "東京都", "a b", "\x00", "", "wìn,win"])
    text = st.none() | st.lists(word, max_size=4).map(" ".join)
    return st.lists(text, min_size=n, max_size=n).map(lambda rows: np.array([*rows, None], dtype=object)[:-1])


@st.composite
def models(draw, max_rows=10):
    """Rows of a whole model: several factors of different families over shared columns."""
    n = draw(st.integers(0, max_rows))
    whole = st.integers(0, 5).map(float)
    drawn = {
        "kind": draw(labels(n)),
        "color": draw(labels(n)),
        "shape": draw(labels(n)),
        "grade": draw(labels(n, ["low", "high"])),
        "length": draw(columns(numbers(), n)),
        "width": draw(columns(numbers(), n)),
        "depth": draw(columns(numbers(), n, missing=False)),
        "height": draw(columns(numbers(), n, missing=False)),
        "spots": draw(columns(whole, n, missing=False)),
        "edges": draw(columns(whole, n, missing=False)),
        "ripe": draw(columns(st.sampled_from([0.0, 1.0]), n)),
        "hits": draw(columns(st.integers(0, 3).map(float), n)),
        "price": draw(columns(cells(tb.LogNormal()), n)),
        **{name: draw(texts(n)) for name in ("note", "title", "label")},
    }
    shared, absent = {"color": "word", "shape": "word"}, ("kind", "color", "grade")
    schema = draw(
        st.sampled_from(
            [
                None,
                tb.Schema(sorted_domains=("kind",)),
                tb.Schema(shared),
                tb.Schema(sorted_domains=("color",), missing_level_domains=absent),
                tb.Schema(shared, missing_level_domains=("word",)),
            ]
        )
    )
    if schema is not None and schema.domains:
        drawn["shape"] = draw(labels(n, ["red", "round", "square"]))
        drawn["color"] = draw(labels(n, ["red", "green"]))
    return WeightedRows(drawn, MODEL, draw(weights(n)), schema)


BOUNDARIES = tb.Hypotheses({"fair": 0.5, "bent": 0.9, "rare": 1e-3}, prior={"fair": 3.0, "bent": 1.0, "rare": 2.0})

# Beliefs, and a family whose statistics they take. Every shape of prior: one number for all, one per group, per cell.
BELIEFS = {
    "Beta": (tb.Beta(0.5, 2.0), tb.Bernoulli()),
    "Beta, binomial": (tb.Beta(3.0, 1.5), tb.Binomial(7)),
    "Dirichlet": (tb.Dirichlet(0.7), tb.Categorical()),
    "Dirichlet, large": (tb.Dirichlet(500.0), tb.Categorical(levels=("a", "b", "unseen"))),
    "Dirichlet, multinomial": (tb.Dirichlet(0.1), tb.Multinomial()),
    "Dirichlet, bins": (tb.Dirichlet(0.4), tb.Binned((0, 2, 5, 9))),
    "Gamma": (tb.Gamma(0.3, 2.0), tb.Poisson()),
    "NormalInverseGamma": (tb.NormalInverseGamma(1.0, 0.1, 1.5, 2.0), tb.Gaussian()),
    "NormalInverseGamma, logarithms": (tb.NormalInverseGamma(1.0, 0.2, 2.5, 0.5), tb.LogNormal()),
    "NormalInverseGamma, groups": (tb.NormalInverseGamma(1.0, 3.0, 0.5, 2.0, tied_over=("groups",)), tb.TiedGaussian()),
    "NormalInverseGamma, columns": (
        tb.NormalInverseGamma(-4.0, 0.1, 1.5, 0.01, tied_over=("columns",)),
        tb.SphericalGaussian(),
    ),
    "NormalInverseGamma, both": (
        tb.NormalInverseGamma(0.0, 1.0, 60.0, 2.0, tied_over=("groups", "columns")),
        tb.TiedSphericalGaussian(),
    ),
    "NormalInverseWishart": (
        tb.NormalInverseWishart([0.0, 1.0], 0.5, 4.0, [[2.0, 0.3], [0.3, 1.0]]),
        tb.MultivariateGaussian(),
    ),
    "NormalInverseWishart, groups": (
        tb.NormalInverseWishart([0.0, 1.0], 2.0, 3.0, [[2.0, -0.3], [-0.3, 1.0]], tied_over=("groups",)),
        tb.TiedMultivariateGaussian(),
    ),
    "LinearNormalInverseGamma": (
        tb.LinearNormalInverseGamma([0.5], [[2.0]], 1.5, 2.0, intercept_location=1.0, strength=0.5, input_center=-1.0),
        tb.LinearGaussian(),
    ),
    "LinearNormalInverseGamma, through the origin": (
        tb.LinearNormalInverseGamma([0.0], [[0.3]], 0.5, 0.2, strength=None),
        tb.LinearGaussianThroughOrigin(),
    ),
    "Hypotheses": (BOUNDARIES, tb.Bernoulli()),
}
