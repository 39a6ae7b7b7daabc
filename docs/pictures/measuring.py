"""Pictures of answers measured: on rows kept back, on rows held out, before and after calibration."""

from __future__ import annotations

import numpy as np
from adult import adult
from canvas import BLUE, GREY, RED, label, new_figure
from matplotlib.figure import Figure
from real_data import DATA
from sklearn.datasets import load_digits

import tallybayes as tb
from tallybayes.demo import penguins


def digits_kept_back() -> tb.Evaluation:
    """Naive Bayes of half of scikit-learn's digits, measured on the other half, as in chapter 10."""
    images, digits = load_digits(return_X_y=True)
    model = tb.NaiveBayes().fit(images[:900], digits[:900])
    return tb.evaluate(model, images[900:], digits[900:])


def draw_confusion() -> Figure:
    """Which digit is taken for which."""
    figure = Figure(figsize=(6.2, 5.2), layout="constrained")
    axes = figure.add_subplot()
    digits_kept_back().plot_confusion(ax=axes)
    axes.grid(visible=False)
    axes.grid(which="minor", color="white", linewidth=1.5)
    return figure


def draw_reliability() -> Figure:
    """How often the penguins of chapter 10 are right, by how sure the model is, and precision against recall."""
    figure = Figure(figsize=(10.6, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    columns = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
    model = tb.NaiveBayes(columns).fit(penguins(300), "species")
    found = tb.evaluate(model, penguins(1000, seed=1), "species")
    found.plot_reliability(ax=left)
    found.plot_precision_recall(ax=right)
    for axes in (left, *left.child_axes, right):
        axes.grid(visible=False)
    return figure


def clinic(n_patients: int, n_visits: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measurements, illness and number of patients who come several times; people differ more than their visits do."""
    rng = np.random.default_rng(seed)
    ill = np.arange(n_patients) % 2
    nature = rng.normal(0, 1, (n_patients, 20))
    nature[:, 0] += 2 * ill
    who = np.repeat(np.arange(n_patients), n_visits)
    return nature[who] + rng.normal(0, 0.3, (len(who), 20)), ill[who], who


def draw_flattering_folds() -> Figure:
    """What random folds and folds of whole patients promise, and what new patients show."""
    figure, (axes,) = new_figure(1)
    visits = [1, 2, 3, 5, 10, 20, 40]
    model, new = tb.GaussianDiscriminant("tied"), clinic(4000, 1, 99)
    means, deviations = [], []
    for n in visits:
        found = []
        for seed in range(20):
            X, y, who = clinic(60, n, seed)
            at_random = tb.cross_validate(model, X, y)
            whole = tb.cross_validate(model, X, y, groups=who)
            found.append([*(r.accuracy.value for r in (at_random, whole)), at_random.model.score(*new[:2])])
        means.append(np.mean(found, axis=0))
        deviations.append(np.std(found, axis=0) / np.sqrt(20))
    looks = [(RED, "--s", "10 folds at random"), (BLUE, "-o", "10 folds, groups = patients")]
    looks.append((GREY, ":", "truth: new patients"))
    for mean, deviation, (colour, line, name) in zip(np.transpose(means), np.transpose(deviations), looks, strict=True):
        axes.errorbar(visits, mean, deviation, fmt=line, color=colour, markersize=6, capsize=3, label=name)
    axes.set_xscale("log")
    axes.set_xticks(visits, [str(n) for n in visits])
    axes.minorticks_off()
    label(axes, "60 patients: ill or not?", "visits of each patient (log scale)", "accuracy", bottom=0.5, top=1)
    axes.legend(loc="upper left")
    return figure


def draw_calibration() -> Figure | None:
    """The census table's test rows: accuracy by confidence, without a calibration and with each."""
    if not (DATA / "tables").is_dir():
        return None
    figure = Figure(figsize=(10.6, 4.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    (X, y), (test, answers) = adult("adult.data.gz"), adult("adult.test.gz")
    model = tb.NaiveBayes().fit(X, y)
    for axes, method in zip(panels, (None, "temperature", "isotonic"), strict=True):
        if method is not None:
            model.calibrate(X, y, method)
        found = tb.evaluate(model, test, answers)
        found.plot_reliability(ax=axes)
        (strip,) = axes.child_axes
        strip.set_title(f"{method or 'as it is'}: calibration error {found.calibration_error.value:.3f}", fontsize=11)
        for each in (axes, strip):
            each.grid(visible=False)
        axes.set_xlabel("probability of the prediction")
        axes.set_ylabel("share that is right" if axes is panels[0] else "")
        axes.set_ylim(0.4, 1.02)
    return figure
