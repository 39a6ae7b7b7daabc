"""What is fixed of a chain: transitions that never happen, where sequences begin, emissions that are shared."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution, stationary_mle
from tallybayes.models.hmm.hmm_parameters import dense
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.sequences import open_sequences
from tests.examples import examples
from tests.shared import DATA, needs
from tests.unit.models.hmm.chains import DIARY, WEATHER, enumerated

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LABELED = [list("aabbcc"), list("abbc"), list("bcc")], [list("xxyyzz"), list("xyyz"), list("yzz")]
FORWARD = [("x", "x"), ("x", "y"), ("y", "y"), ("y", "z"), ("z", "z")]
QUAKES = DATA / "series" / "earthquakes_counts_1900_2006.txt"
BAKIS = np.triu(np.tri(3, k=1, dtype=bool))


def labeled(estimate="bayes", **options):
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate, **options).fit(*LABELED)


def rising(n=6, steps=12, n_states=3, seed=0):
    """Sequences that rise from 0 to higher and higher levels."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        cuts = np.sort(rng.integers(1, steps, n_states - 1))
        out.append(rng.normal(4.0 * np.searchsorted(cuts, np.arange(steps), side="right"), 1.0))
    return out


# ---- Counting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "allowed",
    [FORWARD, BAKIS, BAKIS.tolist(), {"x": ["x", "y"], "y": ("y", "z"), "z": "z"}],
    ids=["pairs", "matrix", "lists", "mapping"],
)
def test_only_what_is_allowed_is_smoothed(allowed):
    model = labeled(allowed_transitions=allowed)
    # x: 1 xx, 2 xy; y: 2 yy, 3 yz; z: 2 zz; one more of each that may be
    np.testing.assert_allclose(model.transition_, [[2 / 5, 3 / 5, 0], [0, 3 / 7, 4 / 7], [0, 0, 1]])
    np.testing.assert_allclose(labeled("map", allowed_transitions=allowed).transition_, model.transition_)
    np.testing.assert_allclose(
        labeled("mle", allowed_transitions=allowed).transition_, [[1 / 3, 2 / 3, 0], [0, 2 / 5, 3 / 5], [0, 0, 1]]
    )
    assert labeled().n_parameters_ - model.n_parameters_ == 6 - 2
    assert model.tally_ == labeled().tally_  # the counts are what they were


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ("left-to-right", [[1, 1, 1], [0, 1, 1], [0, 0, 1]]),
        ("banded", [[1, 1, 0], [1, 1, 1], [0, 1, 1]]),
    ],
)
def test_words(allowed, expected):
    assert ((labeled(allowed_transitions=allowed).transition_ > 0) == np.array(expected, dtype=bool)).all()


def test_sequences_begin_where_they_may():
    model = labeled(start=["x", "y"], prior=2)
    np.testing.assert_allclose(model.start_, [4 / 7, 3 / 7, 0])
    assert labeled().n_parameters_ - model.n_parameters_ == 1
    with pytest.raises(tb.DataError, match="sequence 2 begins in state 'y', which start does not allow"):
        labeled(start=["x"])


def test_beliefs_and_tables_of_what_is_allowed():
    model = labeled(allowed_transitions=FORWARD)
    low, high = model.parameter_table("transition").interval()
    forbidden = ~BAKIS
    assert (np.asarray(low)[forbidden] < 1e-300).all()
    assert (np.asarray(high)[forbidden] < 1e-300).all()
    drawn = model.posterior_["transition"].sample(5, random_state=0)
    assert (drawn[:, forbidden] == 0).all()
    np.testing.assert_allclose(model.posterior_["transition"].mean(), model.transition_, atol=1e-15)
    again = model.reestimate(prior=model.prior_)  # as it was resolved
    np.testing.assert_allclose(again.transition_, model.transition_)
    own = labeled(allowed_transitions=FORWARD, prior={"transition": tb.Dirichlet([[1, 2, 3], [4, 5, 6], [7, 8, 9]])})
    np.testing.assert_allclose(own.transition_[0], [2 / 6, 4 / 6, 0])
    penalty = (labeled().n_parameters_ - 4) * np.log(model.n_rows_)  # four numbers less
    likely = labeled("mle", allowed_transitions=FORWARD).log_likelihood(*LABELED)
    assert model.bic_ == pytest.approx(-2 * likely + penalty)


def test_pictures_of_what_is_allowed():
    pytest.importorskip("matplotlib")
    drawn = labeled(allowed_transitions=FORWARD).plot_transitions().to_frame()
    assert list(zip(drawn["state"], drawn["next"], strict=True)) == FORWARD
    steps = [np.repeat(np.arange(12.0), 3) + np.tile([0.0, 0.1, 0.2], 12)]
    many = tb.HiddenMarkovModel(12, tb.Gaussian(), allowed_transitions="banded", max_iter=3, random_state=0).fit(steps)
    picture = many.plot_transitions()
    assert len(picture.to_frame()) == 12 + 2 * 11
    assert np.ma.getmaskarray(picture.axes[0].images[0].get_array()).sum() == 144 - 34  # the others are blank


def test_evidence_is_of_what_is_allowed():
    """By the steps one after another, each under those before it."""
    model = labeled(allowed_transitions=FORWARD, prior=1, unseen="missing")
    total, start = 0.0, np.ones(3)
    moves, emits = BAKIS.astype(float), np.ones((3, 3))
    for steps, states in zip(*LABELED, strict=True):
        codes, path = ["abc".index(s) for s in steps], ["xyz".index(s) for s in states]
        total += np.log(start[path[0]] / start.sum())
        start[path[0]] += 1
        for before, after in pairwise(path):
            total += np.log(moves[before, after] / moves[before].sum())
            moves[before, after] += 1
        for state, code in zip(path, codes, strict=True):
            total += np.log(emits[state, code] / emits[state].sum())
            emits[state, code] += 1
    assert model.log_evidence() == pytest.approx(total)


def test_counts_of_what_is_forbidden_are_refused_with_their_step():
    with pytest.raises(
        tb.DataError, match="step 1 of sequence 1 goes from 'hot' to 'cold', which allowed_transitions forbids"
    ):
        tb.HiddenMarkovModel(columns=tb.Categorical(), allowed_transitions={"cold": ["cold", "hot"], "hot": "hot"}).fit(
            DIARY[1:], [WEATHER[1], ["hot", "cold", "hot"]]
        )
    model = labeled(allowed_transitions=FORWARD)
    before = model.tally_
    with pytest.raises(tb.DataError, match="step 1 of sequence 0 goes from 'y' to 'x'"):
        model.partial_fit([["a", "a"]], [["y", "x"]])
    assert model.tally_ is before
    with pytest.raises(
        tb.DataError, match="the tally goes from 'x' to 'x' with count 1, which allowed_transitions forbids"
    ):
        model.reestimate(allowed_transitions=FORWARD[1:])
    with pytest.raises(tb.DataError, match="with count 1, which allowed_transitions forbids"):
        tb.HiddenMarkovModel(columns=tb.Categorical(), allowed_transitions=FORWARD[1:]).fit_tally(labeled().tally_)
    with pytest.raises(tb.DataError, match=r"allowed_transitions has shape \(2, 2\); expected \(3, 3\)"):
        labeled(allowed_transitions=np.ones((2, 2), dtype=bool))
    with pytest.raises(tb.DataError, match=r"an array of int64; expected True and False.\n    Pass matrix > 0"):
        labeled(allowed_transitions=BAKIS.astype(np.int64))
    for wrong, message in (
        ("forwards", "allowed_transitions is 'forwards'; expected"),
        (3, "allowed_transitions is 3; expected"),
    ):
        with pytest.raises(tb.EstimateError, match=message):
            labeled(allowed_transitions=wrong)
    with pytest.raises(tb.EstimateError, match="tied is 3; expected a mapping"):
        labeled(tied=3)
    with pytest.raises(tb.EstimateError, match="start is 'x'; expected"):
        labeled(start="x")


@examples(15)
@given(st.data())
def test_counts_add_and_subtract_as_before(data):
    X, y = LABELED
    order = data.draw(st.permutations(range(3)))
    cut = data.draw(st.integers(1, 2))
    some, rest = order[:cut], order[cut:]

    def model(which):
        made = tb.HiddenMarkovModel(
            columns=tb.Categorical(), allowed_transitions=FORWARD, tied={"x": 0, "z": 0}, start=["x", "y"]
        )
        return made.fit([X[k] for k in which], [y[k] for k in which])

    whole = labeled(allowed_transitions=FORWARD, tied={"x": 0, "z": 0}, start=["x", "y"])
    both = model(some) + model(rest)
    assert both.tally_ == whole.tally_
    np.testing.assert_array_equal(both.transition_, whole.transition_)
    assert whole.forget([X[k] for k in rest], [y[k] for k in rest]).tally_ == model(some).tally_
    with pytest.raises(tb.StatisticsError, match="allowed_transitions="):
        whole + labeled()


def test_leaving_sequences_out_keeps_to_it():
    """By subtraction as by counting the others anew."""
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), allowed_transitions=FORWARD, prior=1, unseen="missing")
    X, y = ([*part, *part] for part in LABELED)
    held = tb.leave_one_out(model, X, y).accuracy.value
    right = [
        np.mean(tb.HiddenMarkovModel(columns=tb.Categorical(), allowed_transitions=FORWARD, prior=1, unseen="missing")
                .fit(X[:k] + X[k + 1 :], y[:k] + y[k + 1 :]).predict([X[k]])[0] == np.array(y[k]))
        * len(X[k]) for k in range(6)
    ]  # fmt: skip
    assert held == pytest.approx(sum(right) / sum(map(len, X)))


# ---- EM -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("allowed", ["left-to-right", BAKIS], ids=["word", "matrix"])
def test_zeros_stay_zeros_through_em_and_files(estimate, allowed, tmp_path):
    X = rising()
    model = tb.HiddenMarkovModel(
        3, tb.Gaussian(), estimate=estimate, allowed_transitions=allowed, start=[0], max_iter=60, random_state=0
    ).fit(X)
    kept = np.triu(np.ones((3, 3), dtype=bool)) if isinstance(allowed, str) else BAKIS
    assert (np.diff(model.history_) > -1e-8).all()
    assert (model.transition_[~kept] == 0).all()
    assert (model.tally_["to"].table[~kept] == 0).all()
    assert model.start_.tolist() == [1, 0, 0]
    assert (np.diff(np.ravel(model.emission_[0].mean)) > 0).all()
    for path in model.predict(X):
        assert (np.diff(path) >= 0).all()
    model.save(tmp_path / "model.tally")
    for other in (tb.load(tmp_path / "model.tally"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.transition_, model.transition_)
        assert (other + other).transition_[~kept].max() == 0
    more = model.partial_fit([[0.0, 4.0]], [[0, 1]])
    assert (more.transition_[~kept] == 0).all()


def test_as_hmmlearn_keeps_zeros():
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    X = rising(8)
    start, moves = np.array([1.0, 0, 0]), np.array([[0.8, 0.2, 0], [0, 0.8, 0.2], [0, 0, 1.0]])
    nothing = dict.fromkeys(("tol", "covars_prior", "covars_weight", "means_weight", "min_covar"), 0)
    peer = hmmlearn.GaussianHMM(3, "diag", init_params="", params="stmc", n_iter=30, **nothing)
    peer.startprob_, peer.transmat_ = start, moves
    peer.means_, peer.covars_ = np.array([[0.5], [3.0], [9.0]]), np.ones((3, 1))
    peer.fit(np.concatenate(X)[:, None], [len(x) for x in X])
    known = tb.HiddenMarkovModel.from_tables(
        start,
        moves,
        {k: {"mean": m, "variance": 1.0} for k, m in enumerate((0.5, 3.0, 9.0))},
        allowed_transitions=BAKIS,
    )
    model = tb.HiddenMarkovModel(
        columns=known.columns_, estimate="mle", allowed_transitions=BAKIS, start=[0], max_iter=30, tol=1e-300
    ).fit(X, initial=known)
    np.testing.assert_allclose(model.transition_, peer.transmat_, atol=1e-6)
    np.testing.assert_allclose(np.ravel(model.emission_[0].mean), peer.means_.ravel(), atol=1e-5)


def test_every_path_multiplied_out():
    model = labeled(allowed_transitions=FORWARD, tied={"x": "s", "y": "s"}, unseen="missing")
    codes = [0, -1, 2, 1]
    paths = enumerated(model, codes)
    steps = ["a", None, "c", "b"]
    assert model.score_samples([steps])[0] == pytest.approx(np.logaddexp.reduce(list(paths.values())))
    best = max(paths, key=paths.get)
    assert model.predict([steps])[0].tolist() == ["xyz"[k] for k in best]


def test_what_cannot_be_is_impossible_or_refused():
    model = labeled("mle", allowed_transitions=FORWARD)
    with pytest.warns(UserWarning, match="sequence 0 is impossible at step 2"):
        assert model.score_samples([["b", "c", "a"]]) == -np.inf
    options = {"columns": tb.Categorical(), "allowed_transitions": FORWARD}
    with pytest.raises(tb.DataError, match="sequence 1 is impossible: allowed_transitions and start have no path"):
        tb.HiddenMarkovModel(**options).fit([list("abc"), list("abc")], [["x", "y", "z"], ["z", None, "y"]])
    with pytest.raises(tb.DataError, match="step 2 of sequence 0 goes from 'z' to 'x'"):
        tb.HiddenMarkovModel(**options).fit([list("abcc")], [[None, "z", "x", "y"]])
    with pytest.raises(tb.LabelError, match=r"allowed_transitions= has the unknown state 'x' .known: "):
        tb.HiddenMarkovModel(3, **options).fit([list("abc")])
    with pytest.raises(tb.DataError, match="allowed_transitions has no next state for 1"):
        tb.HiddenMarkovModel(2, tb.Categorical(), allowed_transitions=[(0, 1)]).fit([list("ab")])
    free = tb.HiddenMarkovModel.from_tables([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(
        tb.DataError, match=r"initial= goes from 1 to 0 with probability 0\.5, which allowed_transitions forbids"
    ):
        tb.HiddenMarkovModel(columns=free.columns_, allowed_transitions="left-to-right").fit([[0, 1]], initial=free)
    with pytest.raises(tb.DataError, match=r"from 1 to 0 with probability 0\.5"):
        tb.HiddenMarkovModel.from_tables(
            [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], allowed_transitions="left-to-right"
        )


def test_a_prior_of_tables_with_zeros_that_are_fixed():
    tables = ([0.9, 0.1], [[0.8, 0.2], [0.0, 1.0]], [[0.9, 0.1], [0.2, 0.8]])
    model = tb.HiddenMarkovModel.from_tables(*tables, allowed_transitions="left-to-right", strength=10)
    np.testing.assert_allclose(model.transition_, tables[1])
    model.fit([[0, 0, 1, 1], [0, 1, 1]])
    assert model.transition_[1].tolist() == [0, 1]
    assert (np.diff(model.history_) > -1e-9).all()


# ---- Tied states ----------------------------------------------------------------------------------------------------

FAMILIES = [
    tb.Gaussian(),
    tb.TiedGaussian(),
    tb.SphericalGaussian(),
    tb.MultivariateGaussian(),
    tb.TiedMultivariateGaussian(),
    tb.Poisson(),
    tb.Bernoulli(),
    tb.Categorical(),
]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_tied_states_are_estimated_as_one(family, estimate):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, 20) for _ in range(4)]
    X = [rng.integers(0, 2, (20, 2)) for _ in y]
    if "Gaussian" in type(family).__name__:
        X = [x + rng.normal(0, 0.3, x.shape) for x in X]
    tied = tb.HiddenMarkovModel(columns=family, estimate=estimate, tied={0: "s", 2: "s"}).fit(X, y)
    together = [np.where(part == 2, 0, part) for part in y]
    joined = tb.HiddenMarkovModel(columns=family, estimate=estimate).fit(X, together)
    table = open_sequences([X[0]], None, None, None).table
    found, both = (dense(model._estimated_hmm.parameters.emission_scorer()(table)[0]) for model in (tied, joined))
    np.testing.assert_allclose(found, both[:, [0, 1, 0]])
    assert tied.n_parameters_ == joined.n_parameters_ + 3 + 2 - 1 - 1 + 2  # more transitions and starts alone
    if family.cell_type != "codes":
        assert tied.posterior_[0].interval() is not None


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "bayes"])
def test_tied_states_stay_so_through_em(estimate, tmp_path):
    X = rising(8, n_states=2)
    options = {"tied": {1: "up", 2: "up"}, "random_state": 0, "max_iter": 40}
    model = tb.HiddenMarkovModel(3, tb.Gaussian(), estimate=estimate, **options).fit(X)
    assert (np.diff(model.history_) > -1e-8).all()
    mean = np.ravel(model.emission_[0].mean)
    assert mean[1] == mean[2] != mean[0]
    model.save(tmp_path / "m.tally")
    np.testing.assert_array_equal(np.ravel(tb.load(tmp_path / "m.tally").emission_[0].mean), mean)
    other = tb.HiddenMarkovModel(3, tb.Gaussian(), estimate=estimate, random_state=0, max_iter=40).fit(X)
    with pytest.raises(tb.DataError, match="initial= has different emissions"):
        tb.HiddenMarkovModel(3, tb.Gaussian(), **options).fit(X, initial=other)


# ---- A stationary start ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@examples(25)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_no_transitions_near_by_are_more_likely(seed, n):
    rng = np.random.default_rng(seed)
    moves, starts = rng.gamma(0.5, 4.0, (n, n)) + 0.01, rng.gamma(0.5, 4.0, n)
    found = stationary_mle(starts, moves)
    shares = stationary_distribution(found)
    np.testing.assert_allclose(shares @ found, shares)

    def value(transition):
        return (moves * np.log(transition)).sum() + (starts * np.log(stationary_distribution(transition))).sum()

    best = value(found)
    for _ in range(20):
        other = found * np.exp(rng.normal(0, rng.choice([1e-3, 0.1, 1.0]), (n, n)))
        assert value(other / other.sum(axis=1, keepdims=True)) <= best + 1e-6


def test_two_states_by_a_grid():
    starts, moves = np.array([5.0, 1.0]), np.array([[4.0, 3.0], [2.0, 6.0]])
    p, q = np.meshgrid(np.linspace(0.001, 0.999, 999), np.linspace(0.001, 0.999, 999), indexing="ij")
    value = (4 * np.log(1 - p) + 3 * np.log(p) + 2 * np.log(q) + 6 * np.log(1 - q)
             + 5 * np.log(q / (p + q)) + np.log(p / (p + q)))  # fmt: skip
    i, j = np.unravel_index(value.argmax(), value.shape)
    np.testing.assert_allclose(stationary_mle(starts, moves)[[0, 1], [1, 0]], [p[i, j], q[i, j]], atol=1.1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "published"), [(2, -342.3183), (3, -329.4603)])
@needs("series")
def test_earthquakes(n_states, published):
    """Zucchini and MacDonald (2009): stationary Poisson chains."""
    years = np.loadtxt(QUAKES)
    model = tb.HiddenMarkovModel(
        n_states, tb.Poisson(), estimate="mle", start="stationary", max_iter=1000, tol=1e-9, random_state=0
    ).fit([years])
    assert model.score_samples([years])[0] == pytest.approx(published, abs=5e-5)
    assert (np.diff(model.history_) > -1e-9).all()
    np.testing.assert_allclose(model.start_ @ model.transition_, model.start_, atol=1e-12)
    assert model.n_parameters_ == n_states * n_states
    assert model.aic_ == pytest.approx(2 * n_states * n_states - 2 * published, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_sequences_begin_as_they_go_on(estimate, tmp_path):
    rng = np.random.default_rng(2)
    X = [rng.poisson(np.where(np.cumsum(rng.random(8) < 0.3) % 2, 9, 2)) for _ in range(12)]
    options = {"estimate": estimate, "start": "stationary", "max_iter": 200, "random_state": 0}
    model = tb.HiddenMarkovModel(2, tb.Poisson(), **options).fit(X)
    assert (np.diff(model.history_) > -1e-9).all()
    np.testing.assert_allclose(model.start_ @ model.transition_, model.start_, atol=1e-12)
    model.save(tmp_path / "m.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "m.tally").transition_, model.transition_)
    free = tb.HiddenMarkovModel(2, tb.Poisson(), **(options | {"start": None})).fit(X)
    if estimate == "mle":
        assert free.history_[-1] > model.history_[-1]  # which has a number less to fit
    assert free.n_parameters_ == model.n_parameters_ + 1
    assert "start" not in model.prior_


def test_counted_sequences_with_a_stationary_start():
    X, y = [[1, 2, 1, 1], [2, 2, 1]], [["s", "t", "s", "s"], ["t", "t", "s"]]
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle", start="stationary").fit(X, y)
    found = stationary_mle(np.array([1.0, 1.0]), np.array([[1.0, 1.0], [2.0, 1.0]]))
    np.testing.assert_allclose(model.transition_, found)
    assert model.bic_ == pytest.approx(-2 * model.log_likelihood(X, y) + model.n_parameters_ * np.log(7))
    smooth = model.reestimate(estimate="bayes")
    np.testing.assert_allclose(
        smooth.transition_, stationary_mle(np.array([1.0, 1.0]), np.array([[2.0, 2.0], [3.0, 2.0]])), atol=1e-9
    )
    with pytest.raises(tb.EstimateError, match="has no evidence: with start='stationary'"):
        model.log_evidence()
    with pytest.raises(tb.DataError, match="distribution of an endless sequence, but end_state=True"):
        tb.HiddenMarkovModel(columns=tb.Categorical(), end_state=True, start="stationary").fit(X, y)
    with pytest.raises(tb.DataError, match="needs an irreducible chain"):
        tb.HiddenMarkovModel(2, tb.Categorical(), start="stationary", allowed_transitions="left-to-right").fit(X)
    both = tb.HiddenMarkovModel.from_tables("stationary", [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]])
    np.testing.assert_allclose(both.start_, [0.75, 0.25])


def test_where_states_without_names_are_put():
    structure = Topology(range(3), allowed=np.triu(np.ones((3, 3), dtype=bool)))
    moves = np.zeros((3, 3))
    moves[2, 0] = moves[0, 1] = 5.0  # 2 before 0 before 1
    assert structure.best_state_order(np.zeros(3), moves).tolist() == [1, 2, 0]
