"""The cases of floors.py: what is timed, and the yardstick it is held against. Data are made when a case is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import Contender
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

import tallybayes as tb
from tallybayes import kernels

Case = Callable[[], tuple[Contender, Contender]]
CASES: dict[str, Case] = {}
WORDS = np.array(["ham", "spam", "eggs", "bacon", "toast"], dtype=object)


def case(name: str) -> Callable[[Case], Case]:
    """Give a floor its name."""

    def keep(made: Case) -> Case:
        CASES[name] = made
        return made

    return keep


def fits(ours: Any, theirs: Any, X: Any, y: Any, Z: Any = None, peer_y: Any = None) -> tuple[Contender, Contender]:
    Z, peer_y = X if Z is None else Z, y if peer_y is None else peer_y
    return lambda: ours.fit(X, y), lambda: theirs.fit(Z, peer_y)


def predicts(ours: Any, theirs: Any, X: Any, y: Any, Z: Any = None) -> tuple[Contender, Contender]:
    Z = X if Z is None else Z
    one, other = ours.fit(X, y), theirs.fit(Z, y)
    return lambda: one.predict(X), lambda: other.predict(Z)


@cache
def labels(n: int, classes: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, classes, n)


@cache
def codes(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 10, (n, d), dtype=np.uint8)


@cache
def measured(n: int, d: int, classes: int = 5) -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.standard_normal((n, d)) + 0.3 * rng.normal(size=(classes, d))[labels(n, classes)]


@cache
def binary(n: int, d: int) -> np.ndarray:
    return (np.random.default_rng(3).random((n, d), dtype=np.float32) < 0.2).astype(np.uint8)


@cache
def words(n: int, vocabulary: int, zipf: bool) -> Any:
    """Counts in sorted rows of about 100; like those of text, few columns have most of them."""
    rng = np.random.default_rng(4)
    length = rng.poisson(110, n)
    word = rng.integers(0, vocabulary, length.sum())
    if zipf:
        share = np.cumsum(1 / np.arange(1, vocabulary + 1))
        word = np.minimum(np.searchsorted(share / share[-1], rng.random(length.sum())), vocabulary - 1)
    cells = (np.ones(len(word)), word.astype(np.int32), np.concatenate([[0], np.cumsum(length)]))
    matrix = sp.csr_matrix(cells, (n, vocabulary))
    matrix.sum_duplicates()
    return matrix


def unsorted(matrix: Any) -> Any:
    """The same rows, their entries the other way round, as scikit-learn's CountVectorizer may leave them."""
    backwards = np.repeat(matrix.indptr[:-1] + matrix.indptr[1:] - 1, np.diff(matrix.indptr)) - np.arange(matrix.nnz)
    out = sp.csr_matrix((matrix.data[backwards], matrix.indices[backwards], matrix.indptr), matrix.shape)
    out.has_sorted_indices = out.has_canonical_format = False
    return out


# Naive Bayes: fit and predict, few columns, so that what is done beside counting shows.

N, D = 400_000, 10


@case("codes: fit, int64 labels")
def _() -> Any:
    return fits(tb.NaiveBayes(tb.Categorical()), CategoricalNB(), codes(N, D), labels(N), codes(N, D).astype(np.int64))


@case("codes: fit against reading the bytes")
def _() -> Any:
    model, X, y = tb.NaiveBayes(tb.Categorical()), codes(N, 30), labels(N)
    return lambda: model.fit(X, y), lambda: (kernels.read_bytes(X), kernels.read_bytes(y))


@case("codes: predict")
def _() -> Any:
    wide = codes(N, D).astype(np.int64)
    return predicts(tb.NaiveBayes(tb.Categorical()), CategoricalNB(), codes(N, D), labels(N), wide)


@case("codes: fit, weights")
def _() -> Any:
    model, peer, X, y = tb.NaiveBayes(tb.Categorical()), CategoricalNB(), codes(N, D), labels(N)
    wide, weight = X.astype(np.int64), np.random.default_rng(5).random(N)
    return lambda: model.fit(X, y, weight), lambda: peer.fit(wide, y, weight)


def label_forms() -> dict[str, Callable[[np.ndarray], Any]]:
    import pandas as pd

    return {
        "uint8": lambda y: y.astype(np.uint8),
        "bool": lambda y: y > 2,
        "minus one and one": lambda y: np.where(y > 2, 1, -1),
        "float64": lambda y: y.astype(np.float64),
        "strings as objects": lambda y: WORDS[y],
        "strings as objects of their own": lambda y: WORDS[y].astype(str).astype(object),
        "NumPy strings": lambda y: WORDS[y].astype(str),
        "list of strings": lambda y: WORDS[y].tolist(),
        "pandas strings": lambda y: pd.Series(WORDS[y], dtype="string"),
        "pandas categories": lambda y: pd.Series(pd.Categorical.from_codes(y, WORDS)),
    }


def add_label_form(form: str) -> None:
    @case(f"labels: {form}")
    def _() -> Any:
        y = label_forms()[form](labels(N))
        peer_y = np.asarray(y, dtype=object) if form.startswith("pandas") else y  # as scikit-learn takes them
        return fits(tb.NaiveBayes(), GaussianNB(), measured(N, D), y, peer_y=peer_y)


for name in label_forms():
    add_label_form(name)


@case("binary: fit")
def _() -> Any:
    X = binary(20_000, 784)
    return fits(tb.NaiveBayes(tb.Bernoulli()), BernoulliNB(), X, labels(20_000), X.astype(np.float64))


@case("binary: predict")
def _() -> Any:
    X = binary(20_000, 784)
    return predicts(tb.NaiveBayes(tb.Bernoulli()), BernoulliNB(), X, labels(20_000), X.astype(np.float64))


@case("measured: fit, map")
def _() -> Any:
    return fits(tb.NaiveBayes(estimate="map"), GaussianNB(), measured(N, D), labels(N))


@case("measured: fit, bayes")
def _() -> Any:
    return fits(tb.NaiveBayes(), GaussianNB(), measured(N, D), labels(N))


@case("measured: fit against reading the bytes")
def _() -> Any:
    model, X, y = tb.NaiveBayes(), measured(N, 30), labels(N)
    return lambda: model.fit(X, y), lambda: (kernels.read_bytes(X), kernels.read_bytes(y))


@case("measured: fit, float32 in Fortran's order")
def _() -> Any:
    return fits(tb.NaiveBayes(), GaussianNB(), np.asfortranarray(measured(N, D).astype(np.float32)), labels(N))


@case("measured: predict, map")
def _() -> Any:
    return predicts(tb.NaiveBayes(estimate="map"), GaussianNB(), measured(N, D), labels(N))


@case("measured: predict, bayes")
def _() -> Any:
    return predicts(tb.NaiveBayes(), GaussianNB(), measured(N, D), labels(N))


@case("measured: predict one row, 100 times")
def _() -> Any:
    ours, theirs = tb.NaiveBayes().fit(measured(N, D), labels(N)), GaussianNB().fit(measured(N, D), labels(N))
    row = measured(N, D)[:1]
    return lambda: [ours.predict(row) for _ in range(100)], lambda: [theirs.predict(row) for _ in range(100)]


@case("frame of floats: fit")
def _() -> Any:
    import pandas as pd

    frame = pd.DataFrame(measured(N, D), columns=[f"x{j}" for j in range(D)])
    return fits(tb.NaiveBayes(), GaussianNB(), frame, labels(N))


@case("frame of categories: fit")
def _() -> Any:
    import pandas as pd

    names = [f"level {k}" for k in range(10)]
    frame = pd.DataFrame({f"x{j}": pd.Categorical.from_codes(codes(N, D)[:, j], names) for j in range(D)})
    return fits(tb.NaiveBayes(), CategoricalNB(), frame, labels(N), codes(N, D).astype(np.int64))


@case("frame of both: fit")
def _() -> Any:
    import pandas as pd

    names, half = [f"level {k}" for k in range(10)], D // 2
    columns: dict[str, Any] = {f"x{j}": measured(N, D)[:, j].copy() for j in range(half)}
    columns |= {f"c{j}": pd.Categorical.from_codes(codes(N, D)[:, j], names) for j in range(half)}
    ours, frame, y = tb.NaiveBayes(), pd.DataFrame(columns), labels(N)
    X, Z = measured(N, D)[:, :half].copy(), codes(N, D)[:, :half].astype(np.int64)
    return lambda: ours.fit(frame, y), lambda: (GaussianNB().fit(X, y), CategoricalNB().fit(Z, y))


def add_words(form: str, zipf: bool, change: Callable[[Any], Any]) -> None:
    @case(f"words, {form}: fit")
    def _() -> Any:
        return fits(tb.NaiveBayes(), MultinomialNB(), change(words(30_000, 30_000, zipf)), labels(30_000, 20))

    @case(f"words, {form}: predict")
    def _() -> Any:
        return predicts(tb.NaiveBayes(), MultinomialNB(), change(words(30_000, 30_000, zipf)), labels(30_000, 20))


add_words("uniform", False, lambda matrix: matrix)
add_words("Zipf", True, lambda matrix: matrix)
add_words("Zipf and unsorted", True, unsorted)

# Discriminants.


@case("discriminant, tied: fit")
def _() -> Any:
    ours, peer = tb.GaussianDiscriminant("tied", estimate="map"), LinearDiscriminantAnalysis()
    return fits(ours, peer, measured(40_000, 60), labels(40_000))


@case("discriminant, covariance selected: fit")
def _() -> Any:
    ours, peer = tb.GaussianDiscriminant(estimate="map"), QuadraticDiscriminantAnalysis()
    return fits(ours, peer, measured(40_000, 60), labels(40_000))


@case("discriminant, full: fit")
def _() -> Any:
    ours, peer = tb.GaussianDiscriminant("full", estimate="map"), QuadraticDiscriminantAnalysis()
    return fits(ours, peer, measured(40_000, 60), labels(40_000))


@case("discriminant, tied: predict")
def _() -> Any:
    ours, peer = tb.GaussianDiscriminant("tied", estimate="map"), LinearDiscriminantAnalysis()
    return predicts(ours, peer, measured(40_000, 60), labels(40_000))


@case("discriminant, full: predict")
def _() -> Any:
    ours, peer = tb.GaussianDiscriminant("full", estimate="map"), QuadraticDiscriminantAnalysis()
    return predicts(ours, peer, measured(40_000, 60), labels(40_000))


@case("discriminant, tied, bayes: predict of 784 columns, against X @ (784 x 784)")
def _() -> Any:
    X, square = measured(4_000, 784, 10), np.random.default_rng(8).standard_normal((784, 784))
    model = tb.GaussianDiscriminant("tied").fit(X, labels(4_000, 10))
    return lambda: model.predict(X), lambda: X @ square


@case("moments: scatter of 10 x 500 x 500, against adding its two parts")
def _() -> Any:
    moments: Any = tb.GaussianDiscriminant().fit(measured(2_000, 500, 10), labels(2_000, 10)).tally_.statistics[1]
    parts = moments.anchor, moments.weight_sum, moments.first_sum, moments.second_sum
    return lambda: tb.Moments(*parts).scatter, lambda: moments.second_sum.high + moments.second_sum.low


# Held-out scoring, against one fit and one predict of the same model.


def add_folds(form: str, make: Callable[[], tuple[Any, Any, np.ndarray]]) -> None:
    @case(f"ten folds: {form}")
    def _() -> Any:
        model, X, y = make()
        return lambda: tb.cross_validate(model, X, y), lambda: model.fit(X, y).predict(X)

    @case(f"leave one out: {form}")
    def _() -> Any:
        model, X, y = make()
        return lambda: tb.leave_one_out(model, X, y), lambda: model.fit(X, y).predict(X)


add_folds("codes", lambda: (tb.NaiveBayes(tb.Categorical()), codes(100_000, 20), labels(100_000)))
add_folds("yes/no", lambda: (tb.NaiveBayes(tb.Bernoulli()), binary(100_000, 50), labels(100_000)))
add_folds("measured", lambda: (tb.NaiveBayes(), measured(100_000, 20), labels(100_000)))
add_folds("words", lambda: (tb.NaiveBayes(), words(20_000, 10_000, True), labels(20_000)))
add_folds("tied covariance", lambda: (tb.GaussianDiscriminant("tied"), measured(20_000, 60), labels(20_000)))
add_folds("full covariances", lambda: (tb.GaussianDiscriminant(), measured(20_000, 60), labels(20_000)))

# EM: eleven steps each, from seeds of their own.


@case("mixture, diag: eleven steps of EM")
def _() -> Any:
    return _mixtures(tb.Gaussian(), "diag")


@case("mixture, full: eleven steps of EM")
def _() -> Any:
    return _mixtures(tb.MultivariateGaussian(), "full")


def _mixtures(family: Any, name: str) -> Any:
    X = measured(60_000, 20)
    ours = tb.Mixture(5, family, estimate="map", max_iter=11, tol=1e-300, n_init=1, random_state=0)
    theirs = GaussianMixture(5, covariance_type=name, max_iter=11, tol=1e-300, init_params="random", random_state=0)
    return lambda: ours.fit(X), lambda: theirs.fit(X)


def _add_whole_fits() -> None:
    families = {"diag": tb.Gaussian(), "full": tb.MultivariateGaussian(), "tied": tb.TiedMultivariateGaussian()}
    for name, family in families.items():

        @case(f"mixture, {name}: whole fit with its initialization")
        def _(name: str = name, family: Any = family) -> Any:
            X = measured(20_000, 20) + 2.0 * np.random.default_rng(0).integers(0, 8, 20_000)[:, None]
            options: dict[str, Any] = {"max_iter": 5, "tol": 1e-300, "random_state": 0}
            ours = tb.Mixture(8, family, estimate="mle", n_init=1, **options)
            theirs = GaussianMixture(8, covariance_type=name, **options)
            return lambda: ours.fit(X), lambda: theirs.fit(X)

    @case("mixture: whole fit of 150 rows, three starts")
    def _() -> Any:
        X = measured(150, 4) + 3.0 * (np.arange(150) % 3)[:, None]
        ours, theirs = tb.Mixture(3, random_state=0), GaussianMixture(3, n_init=3, random_state=0)
        return lambda: ours.fit(X), lambda: theirs.fit(X)


_add_whole_fits()

# Hidden Markov models, against NumPy over all sequences at once.


def _chain(n_states: int, n_sequences: int, length: int) -> tuple[Any, np.ndarray, list[int]]:
    rng = np.random.default_rng(6)
    steps, states = rng.integers(0, 20, n_sequences * length), rng.integers(0, n_states, n_sequences * length)
    model = tb.HiddenMarkovModel(n_states, tb.Categorical(levels=tuple(range(20))), estimate="map")
    lengths = [length] * n_sequences
    return model.fit(steps, states, lengths), steps, lengths


def _parts(n_states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    ones = np.ones(n_states)
    return rng.dirichlet(ones), rng.dirichlet(ones, n_states), rng.dirichlet(np.ones(20), n_states).T


def _forward(start: np.ndarray, moves: np.ndarray, seen: np.ndarray, keep: list[np.ndarray] | None = None) -> float:
    """The log-likelihood of sequences (length, n, states) by the scaled forward recursion."""
    state, total = start * seen[0], 0.0
    for t in range(len(seen)):
        state = state if t == 0 else (state @ moves) * seen[t]
        scale = state.sum(axis=1, keepdims=True)
        state, total = state / scale, total + float(np.log(scale).sum())
        if keep is not None:
            keep.append(state)
    return total


def _viterbi(start: np.ndarray, moves: np.ndarray, emits: np.ndarray, steps: np.ndarray) -> np.ndarray:
    log_moves, back = np.log(moves), []
    best = np.log(start) + np.log(emits)[steps[0]]
    for step in steps[1:]:
        scores = best[:, :, None] + log_moves
        back.append(scores.argmax(axis=1))
        best = scores.max(axis=1) + np.log(emits)[step]
    path = [best.argmax(axis=1)]
    for pointers in reversed(back):
        path.append(np.take_along_axis(pointers, path[-1][:, None], axis=1)[:, 0])
    return np.array(path)


def _baum_welch(start: np.ndarray, moves: np.ndarray, seen: np.ndarray, n_steps: int) -> None:
    for _ in range(n_steps):
        states: list[np.ndarray] = []
        _forward(start, moves, seen, states)
        back, counts = np.ones_like(states[0]), np.zeros_like(moves)
        for t in range(len(seen) - 1, 0, -1):
            ahead = back * seen[t]
            counts += moves * (states[t - 1].T @ ahead)
            back = ahead @ moves.T
            back /= back.sum(axis=1, keepdims=True)
        moves = counts / counts.sum(axis=1, keepdims=True)


def add_chain(n_states: int, n_sequences: int, length: int) -> None:
    about = f"hidden Markov model, {n_states} states"

    @case(f"{about}: log-likelihood")
    def _() -> Any:
        model, steps, lengths = _chain(n_states, n_sequences, length)
        (start, moves, emits), turned = _parts(n_states), steps.reshape(n_sequences, length).T
        return lambda: model.score_samples(steps, lengths), lambda: _forward(start, moves, emits[turned])

    @case(f"{about}: Viterbi")
    def _() -> Any:
        model, steps, lengths = _chain(n_states, n_sequences, length)
        parts, turned = _parts(n_states), steps.reshape(n_sequences, length).T
        return lambda: model.predict(steps, lengths), lambda: _viterbi(*parts, turned)


@case("hidden Markov model, 5 states: Viterbi of one sequence, against its log-likelihood")
def _() -> Any:
    model, steps, lengths = _chain(5, 1, 600_000)
    return lambda: model.predict(steps, lengths), lambda: model.score_samples(steps, lengths)


@case("hidden Markov model, 5 states: 40 Baum–Welch steps")
def _() -> Any:
    n_sequences, length, n_steps = 200, 200, 40  # so many that the seeds, which NumPy does without, do not count much
    _, steps, lengths = _chain(5, n_sequences, length)
    (start, moves, emits), turned = _parts(5), steps.reshape(n_sequences, length).T
    options = {"estimate": "map", "max_iter": n_steps, "tol": 1e-300, "random_state": 0}
    model = tb.HiddenMarkovModel(5, tb.Categorical(levels=tuple(range(20))), **options)
    return lambda: model.fit(steps, None, lengths), lambda: _baum_welch(start, moves, emits[turned], n_steps)


def add_whole_fit(n_states: int, n_sequences: int, length: int) -> None:
    @case(f"hidden Markov model, {n_states} states: a whole fit of 3 iterations")
    def _() -> Any:
        _, steps, lengths = _chain(n_states, n_sequences, length)
        (start, moves, emits), turned = _parts(n_states), steps.reshape(n_sequences, length).T
        options = {"estimate": "mle", "max_iter": 3, "tol": 1e-300, "random_state": 0}
        model = tb.HiddenMarkovModel(n_states, tb.Categorical(levels=tuple(range(20))), **options)
        return lambda: model.fit(steps, None, lengths), lambda: _baum_welch(start, moves, emits[turned], 3)


add_chain(5, 400, 300)
add_chain(30, 60, 200)
add_whole_fit(5, 100, 1000)
add_whole_fit(50, 100, 200)

# Networks, against NumPy: tables by bincount, posteriors by the whole joint distribution.


@case("network: tables of 20 nodes")
def _() -> Any:
    rng, n, names = np.random.default_rng(8), 100_000, [f"x{k}" for k in range(20)]
    parents = {name: tuple(names[max(0, k - 2) : k]) for k, name in enumerate(names)}
    rows = {name: rng.integers(0, 3, n, dtype=np.uint8) for name in names}
    model = tb.BayesianNetwork(parents, columns=dict.fromkeys(names, tb.Categorical()))

    def by_numpy() -> Any:
        found = []
        for name in names:
            cell = rows[name].astype(np.int64)
            for place, parent in enumerate(parents[name]):
                cell += rows[parent].astype(np.int64) * 3 ** (place + 1)
            found.append(np.bincount(cell, minlength=3 ** (1 + len(parents[name]))))
        return found

    return lambda: model.fit(rows), by_numpy


@case("network: posteriors of 11 nodes, 2,000 rows")
def _() -> Any:
    rng, n, names = np.random.default_rng(9), 2_000, [f"x{k}" for k in range(11)]
    parents = {name: tuple(names[max(0, k - 2) : k]) for k, name in enumerate(names)}
    rows = {name: rng.integers(0, 2, 10_000) for name in names}
    model = tb.BayesianNetwork(parents, columns=dict.fromkeys(names, tb.Categorical())).fit(rows)
    known = rng.random((n, len(names))) < 0.5
    asked = {name: np.where(known[:, k], rows[name][:n], np.nan) for k, name in enumerate(names)}
    states = np.array(list(product([0, 1], repeat=len(names))))
    joint = np.random.default_rng(10).random(len(states))

    def by_numpy() -> Any:
        weight = np.tile(joint, (n, 1))
        for k, name in enumerate(names):
            cell = asked[name][:, None]
            weight *= np.isnan(cell) | (cell == states[:, k])
        return (weight @ states) / weight.sum(axis=1, keepdims=True)

    return lambda: model.predict_proba(asked), by_numpy


# Families chosen by evidence, against a fit that has none to choose.


@case("columns='suggest': fit of 500,000 x 5, against 'auto'")
def _() -> Any:
    rng, n = np.random.default_rng(0), 500_000
    y = rng.integers(0, 3, n)
    zeros = np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n))
    parts = [rng.normal(y), np.exp(rng.normal(size=n)), rng.poisson(3, n), rng.integers(0, 2, n), zeros]
    X = np.column_stack(parts).astype(float)
    return lambda: tb.NaiveBayes("suggest").fit(X, y), lambda: tb.NaiveBayes().fit(X, y)


# Kernels, against the time to read the bytes.


@case("kernel: count_codes, int64 rows")
def _() -> Any:
    X, y, sizes = codes(N, 30).astype(np.int64), labels(N).astype(np.uint8), np.full(30, 10)
    return lambda: kernels.count_codes(X, sizes, y, 5), lambda: kernels.read_bytes(X)


@case("kernel: count_codes, uint8 columns")
def _() -> Any:
    X, y, sizes = np.asfortranarray(codes(N, 30)), labels(N).astype(np.uint8), np.full(30, 10)
    return lambda: kernels.count_codes(X, sizes, y, 5), lambda: kernels.read_bytes(X)


@case("kernel: sum_dense, binary uint8")
def _() -> Any:
    X, y = binary(20_000, 784), labels(20_000).astype(np.uint8)
    return lambda: kernels.sum_dense(X, "binary", y, 5), lambda: kernels.read_bytes(X)


@case("kernel: sum_csr, multinomial")
def _() -> Any:
    X, y = words(30_000, 30_000, True), labels(30_000, 20)
    parts = (X.indptr, X.indices, X.data, X.shape[1], "multinomial", y, 20)
    return lambda: kernels.sum_csr(*parts), lambda: (kernels.read_bytes(X.data), kernels.read_bytes(X.indices))


@case("kernel: sum_moments, float64")
def _() -> Any:
    X, y = measured(N, 30), labels(N).astype(np.uint8)
    return lambda: kernels.sum_moments(X, np.zeros(30), y, 5), lambda: kernels.read_bytes(X)


@case("kernel: sum_scatter, float64, against X.T @ X")
def _() -> Any:
    X, y = measured(40_000, 60), labels(40_000).astype(np.uint8)
    return lambda: kernels.sum_scatter(X, np.zeros(60), y, 5), lambda: X.T @ X


@case("pairs: fit of 300,000 x 20 codes, against naive Bayes")
def _() -> Any:
    X, y = codes(300_000, 20), labels(300_000)
    ours, other = tb.AveragedOneDependence(tb.Categorical()), tb.NaiveBayes(tb.Categorical())
    return lambda: ours.fit(X, y), lambda: other.fit(X, y)


@case("pairs: predict of 100,000 x 20 codes, against naive Bayes")
def _() -> Any:
    X, y = codes(100_000, 20), labels(100_000)
    ours, other = (kind(tb.Categorical()).fit(X, y) for kind in (tb.AveragedOneDependence, tb.NaiveBayes))
    return lambda: ours.predict(X), lambda: other.predict(X)


@case("choose: 600 x 12, against two hundred trees of depth 3")
def _() -> Any:
    X, y = measured(600, 12, 3), labels(600, 3)
    peer = GradientBoostingClassifier(n_estimators=67, max_depth=3, random_state=0)
    return lambda: tb.AutoClassifier().fit(X, y), lambda: peer.fit(X, y)


@case("forest: fit of 2,000 x 12, against a random forest")
def _() -> Any:
    return fits(tb.CountForest(100), RandomForestClassifier(100, n_jobs=-1), measured(2000, 12, 3), labels(2000, 3))


@case("boosting: fit of 2,000 x 12, against a random forest")
def _() -> Any:
    peer = RandomForestClassifier(100, n_jobs=-1)
    return fits(tb.CountBoosting(50), peer, measured(2000, 12, 3), labels(2000, 3))


@case("forest: predict of 5,000 x 12, against a random forest")
def _() -> Any:
    peer = RandomForestClassifier(100, n_jobs=-1)
    return predicts(tb.CountForest(100), peer, measured(5000, 12, 3), labels(5000, 3))


@case("boosting: predict of 5,000 x 12, against a random forest")
def _() -> Any:
    peer = RandomForestClassifier(100, n_jobs=-1)
    return predicts(tb.CountBoosting(50), peer, measured(5000, 12, 3), labels(5000, 3))
