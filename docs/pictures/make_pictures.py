"""Draw the pictures of the handbook: ``python docs/pictures/make_pictures.py`` writes them next to this file.

Every number comes from tallybayes itself; every random draw has a seed, so the same pictures come out each time. Names
of pictures on the command line draw only these. Real data are read from ``../shared/data``; without these, their
pictures stay. All but ``learning-curve``, which takes two minutes, take seconds.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from assumption import draw_dependence, draw_predictive_check
from canvas import BLUE, GREEN, GREY, ORANGE, RED, STYLE, label, new_figure
from comparing import draw_log_normal, draw_occam
from deciding import draw_expected_cost, draw_intervals
from hidden_markov import draw_earthquakes, draw_hidden_markov_graph, draw_starts, draw_trellis
from less import draw_geyser, draw_learning_curve
from matplotlib.figure import Figure
from measuring import draw_calibration, draw_confusion, draw_flattering_folds, draw_reliability
from networks import draw_alarm_network, draw_fire_alarm, draw_network_learning, draw_what_moved
from PIL import Image
from real_data import DATA, mnist
from sklearn.datasets import load_iris
from strengths import draw_prior_path, draw_shrinkage

import tallybayes as tb
from tallybayes.demo import penguins

HERE = Path(__file__).parent


def draw_beta_priors() -> Figure:
    """Four Beta densities: what each believes about a coin before the first toss."""
    figure, (axes,) = new_figure(1)
    tb.Beta([1, 2, 10, 2], [1, 2, 10, 3]).plot(axes)
    label(axes, "Four beliefs about a coin", "θ, the probability of heads", "density", top=4)
    return figure


def draw_coin_posteriors() -> Figure:
    """Prior, likelihood and posterior after 2 and after 100 tosses."""
    figure, panels = new_figure(2)
    tosses = [([1, 1], "2 tosses: 2 heads"), ([1] * 55 + [0] * 45, "100 tosses: 55 heads, 45 tails")]
    for axes, (values, title) in zip(panels, tosses, strict=True):
        tb.learn(values, tb.Bernoulli()).plot(tb.Beta(2, 2), axes)
        axes.set(title=title, xlabel="θ, the probability of heads")
        axes.legend(loc="upper left", fontsize=9)
    panels[0].set_ylim(0, 5.2)
    return figure


def draw_map_meets_ml() -> Figure:
    """Estimates of one coin while the tosses come in, under a prior that is mistaken."""
    figure, (axes,) = new_figure(1)
    truth, prior = 0.3, tb.Beta(9, 3)
    tosses = np.random.default_rng(4).random(3000) < truth
    numbers = np.unique(np.geomspace(1, len(tosses), 90).astype(int))
    coins = [tb.learn(tosses[:n], tb.Bernoulli()) for n in numbers]
    low, high = np.transpose([coin.posterior(prior).interval(0.95) for coin in coins])
    axes.fill_between(numbers, low, high, color=BLUE, alpha=0.16, linewidth=0, label="95 % credible interval")
    axes.plot(numbers, [coin.estimate("map", prior=prior) for coin in coins], "-", color=BLUE, label="MAP, Beta(9, 3)")
    axes.plot(numbers, [coin.estimate("mle") for coin in coins], "--", color=RED, label="maximum likelihood")
    axes.axhline(truth, color=GREY, linewidth=1.4, linestyle=":", label="the truth, 0.3")
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    label(
        axes, "MAP approaches ML as data grow", "tosses (log scale)", "θ, the probability of heads", bottom=-0.03, top=1
    )
    axes.legend(loc="upper right")
    return figure


def draw_student_t() -> Figure:
    """The next value after 1, 2, 6: plugged in, and integrated out."""
    figure, panels = new_figure(2)
    values = [1.0, 2.0, 6.0]
    learned = tb.learn(values, tb.Gaussian())
    x = np.linspace(-13, 19, 641)
    most_likely = learned.estimate("mle")
    plugged_in = np.exp(tb.Gaussian().log_prob(most_likely, x[:, None]))[:, 0]
    integrated = np.exp(learned.predictive().log_prob(x))
    for axes, scale in zip(panels, ("linear", "log"), strict=True):
        axes.plot(x, plugged_in, "--", color=RED, label="plug-in: N(3, 14/3)")
        axes.plot(x, integrated, "-", color=BLUE, label="predictive: Student t")
        axes.set_yscale(scale)
        floor = 0 if scale == "linear" else 1e-6
        top = 0.26 if scale == "linear" else 1
        axes.plot(
            values, [floor + 0.003 if scale == "linear" else 1.6e-6] * 3, "^", color="black", label="data 1, 2, 6"
        )
        title = "The density of the next value" if scale == "linear" else "The same on a log scale: the tails"
        label(axes, title, "x", "density", top=top, bottom=floor, span=(-13, 19))
    panels[0].legend(loc="upper left")
    return figure


def draw_forgetting() -> Figure:
    """How wrong the variance is after forgetting, for data further and further from 0."""
    figure, (axes,) = new_figure(1)
    offsets = 10.0 ** np.arange(0, 13)
    noise = np.random.default_rng(7).integers(-512, 513, 10_000) / 1024  # such numbers plus an offset are exact
    errors: dict[str, list[float]] = {"naive": [], "tally": []}
    for offset in offsets:
        rows = offset + noise
        gone, truth = rows[:-10], np.var(noise[-10:])
        total, squares = rows.sum() - gone.sum(), (rows**2).sum() - (gone**2).sum()
        rest = tb.learn(rows, tb.Gaussian()) - tb.learn(gone, tb.Gaussian())
        errors["naive"].append(abs((squares - total**2 / 10) / 10 / truth - 1))
        errors["tally"].append(abs(rest.estimate("mle").variance / truth - 1))
    smallest = 1e-17  # an error of 0 has no logarithm
    axes.loglog(offsets, np.maximum(errors["naive"], smallest), "--s", color=RED, label="naive: Σx² − n·x̄² in float64")
    axes.loglog(
        offsets,
        np.maximum(errors["tally"], smallest),
        "-o",
        color=BLUE,
        label="tallybayes (an error of 0 is drawn at 10⁻¹⁷)",
    )
    axes.axhline(1, color=GREY, linewidth=1.2, linestyle=":")
    axes.text(1.3, 2.5, "error as large as the variance itself", color=GREY, fontsize=11)
    axes.set_yticks([10.0**k for k in range(-15, 16, 5)])
    label(
        axes,
        "Forgetting 9,990 of 10,000 rows",
        "offset of the data",
        "relative error of the variance",
        span=(0.8, 1.5e12),
    )
    axes.set_ylim(1e-18, 1e15)
    axes.legend(loc="upper left")
    return figure


def draw_bags() -> Figure:
    """Five hypotheses about a bag while one green bead after the other is drawn."""
    figure, (axes,) = new_figure(1)
    shares = {"none green": 0.0, "¼ green": 0.25, "½ green": 0.5, "¾ green": 0.75, "all green": 1.0}
    bags = tb.Hypotheses(shares, prior=[0.1, 0.2, 0.4, 0.2, 0.1])
    draws = np.arange(11)
    posteriors = [tb.learn([1] * n, tb.Bernoulli()).posterior(bags).probabilities for n in draws]
    looks = [(GREY, ":", "v"), (GREEN, "-.", "D"), (ORANGE, "--", "s"), (RED, "-.", "^"), (BLUE, "-", "o")]
    for name, (colour, line, mark) in zip(shares, looks, strict=True):
        axes.plot(draws, [p[name] for p in posteriors], line, marker=mark, markersize=6, color=colour, label=name)
    axes.set_xticks(draws)
    label(axes, "Which bag is it? Every bead drawn is green", "beads drawn", "probability of the bag", top=1)
    axes.legend(loc="upper left")
    return figure


def draw_strange_prior() -> Figure:
    """A grid with a prior no formula has, before and after 10 tosses."""
    figure, panels = new_figure(2)
    grid = tb.Hypotheses.grid(np.linspace(0, 1, 101).round(2), prior=strange_density)
    coin = tb.learn([1] * 8 + [0] * 2, tb.Bernoulli())
    grid.plot(panels[0])
    coin.plot(grid, panels[1])
    for axes, title in zip(panels, ("Prior: fair, or filed to favour heads", "After 8 heads, 2 tails"), strict=True):
        axes.set(title=title, xlabel="θ, the probability of heads")
    panels[1].set_ylabel("")
    panels[1].legend(loc="upper left")
    return figure


def strange_density(theta: float) -> float:
    """Three quarters of the mass close to fair, one quarter spread over coins filed to favour heads."""
    fair = np.exp(-0.5 * ((theta - 0.5) / 0.02) ** 2)
    filed = 0.06 if 0.6 <= theta <= 0.9 else 0.0
    return float(fair + filed)


def draw_fair_or_not() -> Figure:
    """The evidence for a fair coin against an unknown one, for every number of heads in 20 and in 100 tosses."""
    figure, panels = new_figure(2)
    for axes, n in zip(panels, (20, 100), strict=True):
        heads = np.arange(n + 1)
        coins = [tb.learn([1] * h + [0] * (n - h), tb.Bernoulli()) for h in heads]
        unknown = [-coin.log_evidence(tb.Beta(1, 1)) / np.log(2) for coin in coins]
        axes.axhline(n, color=RED, linestyle="--", label="fair coin, θ = ½")
        axes.plot(heads, unknown, "-", color=BLUE, label="unknown θ, Beta(1, 1)")
        label(axes, f"Coding {n} tosses", "heads", "bits", top=1.35 * n)
        axes.set_xlim(0, n)
        axes.set_xticks(range(0, n + 1, n // 5))
        axes.set_ylim(0)
        axes.legend(loc="lower center")
    return figure


def penguin_model() -> tb.NaiveBayes:
    """The model of chapter 7."""
    columns = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
    return tb.NaiveBayes(columns).fit(penguins(300), "species")


def draw_penguin_columns() -> Figure:
    """p(column | species) for every column of the penguins."""
    return penguin_model().plot_columns().figure


def draw_naive_bayes_graph() -> Figure:
    """What depends on what among the penguins."""
    return penguin_model().plot_graph().figure


def draw_explanation() -> Figure:
    """The weights of evidence of the bird of chapter 7."""
    figure, (axes,) = new_figure(1)
    bird = {"island": ["Dream"], "bill_mm": [44.5], "mass_g": [None], "sex": ["female"], "eggs": [2]}
    penguin_model().plot_explanation(bird, ax=axes)
    return figure


def draw_product_of_marginals() -> Figure:
    """Two classes whose columns are correlated, and what naive Bayes makes of them."""
    figure, panels = new_figure(2)
    y = np.repeat([0, 1], 5000)
    noise = np.random.default_rng(2).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], len(y))
    X = np.where(y[:, None] == 1, 0.7, -0.7) + noise
    tb.GaussianDiscriminant().fit(X, y).plot_joint(X[::25], y[::25], ax=panels)
    for axes in panels:
        axes.grid(visible=False)
        axes.set(xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), aspect="equal", xlabel="x₁")
    panels[0].set_ylabel("x₂")
    return figure


def draw_mnist() -> Figure | None:
    """MNIST under a Bernoulli per pixel: class means, draws from the classes, test images and predictions."""
    train, test = mnist("train"), mnist("t10k")
    if train is None or test is None:
        return None
    model = tb.NaiveBayes(tb.Bernoulli()).fit(train[0] > 127, train[1])
    images, digits = test[0] > 127, test[1]
    proba = model.predict_proba(images)
    wrong = np.flatnonzero(proba.argmax(axis=1) != digits)
    print(f"mnist: {1 - len(wrong) / len(digits):.2%} of the test digits right")
    chosen = np.concatenate([np.arange(6), wrong[:4]])
    figure = Figure(figsize=(10.6, 3.9), layout="constrained")
    panels = figure.subplots(3, 10)
    means = tb.learn(train[0] > 127, tb.Bernoulli(), group=train[1]).estimate("bayes")
    drawn = [model.sample(1, given=digit, random_state=digit)[0][0] for digit in range(10)]
    rows = [np.asarray(means), np.array(drawn), images[chosen]]
    for line, pictures in zip(panels, rows, strict=True):
        for axes, picture in zip(line, pictures, strict=True):
            axes.imshow(picture.reshape(28, 28), cmap="Greys", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
    for axes, row in zip(panels[2], chosen, strict=True):
        best = int(proba[row].argmax())
        right = best == digits[row]
        axes.set_xlabel(f"{best}: {proba[row, best]:.2f}", color="black" if right else RED, fontsize=11)
    for axes, title in zip(panels[:, 0], ("mean", "sample", "test"), strict=True):
        axes.set_ylabel(title)
    return figure


def petals() -> tuple[np.ndarray, np.ndarray]:
    """Sepal width and petal length of the irises: two columns in which the species differ in shape."""
    iris = load_iris()
    return iris.data[:, [1, 2]], iris.target_names[iris.target]


def draw_decisions() -> Figure:
    """Quadratic, linear and diagonal discriminants of the same moments."""
    figure, panels = new_figure(3)
    X, y = petals()
    model = tb.GaussianDiscriminant(estimate="unbiased").fit(X, y)
    for axes, covariance in zip(panels, ("full", "tied", "diagonal"), strict=True):
        model.reestimate(covariance=covariance).plot_decision(X, y, ax=axes)
        axes.grid(visible=False)
        axes.set(title=covariance, xlabel="sepal width, cm", ylabel="", xlim=(1.8, 4.6), ylim=(0.9, 7.05))
        if axes is not panels[2]:
            axes.get_legend().remove()
    panels[0].set_ylabel("petal length, cm")
    return figure


def draw_projection() -> Figure:
    """All four columns of iris on the two directions that part the species."""
    figure, (axes,) = new_figure(1)
    iris = load_iris()
    y = iris.target_names[iris.target]
    tb.GaussianDiscriminant("tied").fit(iris.data, y).plot_projection(iris.data, y, ax=axes)
    axes.set_title("Four columns of iris on two directions")
    return figure


def stretched() -> tuple[np.ndarray, np.ndarray]:
    """Three classes side by side along x₁, spread far along x₂; one row in twelve is mismeasured in x₁."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 400)
    centres = np.array([[-2.0, 3.0], [0.0, -4.0], [2.0, 3.0]])
    spread = np.stack([np.where(rng.random(len(y)) < 1 / 12, 8.0, 0.45), np.full(len(y), 6.0)], axis=1)
    return centres[y] + rng.normal(0, 1, (len(y), 2)) * spread, y


def draw_nearest_means() -> Figure:
    """The nearest mean under three metrics."""
    figure, panels = new_figure(3)
    X, y = stretched()
    for axes, metric in zip(panels, ("euclidean", "mahalanobis", "learned"), strict=True):
        model = tb.NearestClassMean(metric).fit(X, y)
        model.plot_decision(X[::3], y[::3], ax=axes)
        axes.grid(visible=False)
        title = f"{metric}: {model.score(X, y):.0%} right"
        axes.set(title=title, xlabel="x₁", ylabel="", xlim=(-4.5, 4.5), ylim=(-20, 20))
        if axes is not panels[2]:
            axes.get_legend().remove()
    panels[0].set_ylabel("x₂")
    return figure


PICTURES = {
    "beta-priors": draw_beta_priors,
    "coin-posteriors": draw_coin_posteriors,
    "map-meets-ml": draw_map_meets_ml,
    "student-t": draw_student_t,
    "forgetting": draw_forgetting,
    "bags": draw_bags,
    "strange-prior": draw_strange_prior,
    "fair-or-not": draw_fair_or_not,
    "penguin-columns": draw_penguin_columns,
    "naive-bayes-graph": draw_naive_bayes_graph,
    "explanation": draw_explanation,
    "product-of-marginals": draw_product_of_marginals,
    "mnist": draw_mnist,
    "decisions": draw_decisions,
    "projection": draw_projection,
    "nearest-means": draw_nearest_means,
    "confusion": draw_confusion,
    "reliability": draw_reliability,
    "flattering-folds": draw_flattering_folds,
    "calibration": draw_calibration,
    "occam": draw_occam,
    "log-normal": draw_log_normal,
    "shrinkage": draw_shrinkage,
    "prior-path": draw_prior_path,
    "intervals": draw_intervals,
    "expected-cost": draw_expected_cost,
    "dependence": draw_dependence,
    "predictive-check": draw_predictive_check,
    "learning-curve": draw_learning_curve,
    "geyser": draw_geyser,
    "hidden-markov-graph": draw_hidden_markov_graph,
    "trellis": draw_trellis,
    "earthquakes": draw_earthquakes,
    "starts": draw_starts,
    "fire-alarm": draw_fire_alarm,
    "what-moved": draw_what_moved,
    "network-learning": draw_network_learning,
    "alarm-network": draw_alarm_network,
}


def main() -> None:
    """Draw them all, or those that are named."""
    with mpl.rc_context(STYLE):
        for name in sys.argv[1:] or PICTURES:
            figure = PICTURES[name]()
            if figure is None:
                print(f"no data for {name} at {DATA}: {name}.png stays as it is.")
                continue
            drawn = BytesIO()
            figure.savefig(drawn, dpi=100)
            # A palette of 128 colours keeps the lines smooth and the file a third of the size.
            Image.open(drawn).convert("RGB").quantize(128).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
