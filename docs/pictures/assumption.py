"""Pictures of what naive Bayes assumes, and the Adult table looked at: ``python docs/pictures/assumption.py``."""

from __future__ import annotations

from adult import adult
from canvas import new_figure
from matplotlib.figure import Figure
from real_data import DATA
from sklearn.datasets import load_breast_cancer

import tallybayes as tb


def draw_dependence() -> Figure:
    """What the first twenty columns of the breast cancer table share given the class."""
    figure = Figure(figsize=(8.6, 7.4), layout="constrained")
    table = load_breast_cancer(as_frame=True)
    tb.dependence(table.data.iloc[:, :20], table.target).plot(figure.add_subplot())
    figure.axes[0].grid(visible=False)
    return figure


def draw_predictive_check() -> Figure:
    """One column of the breast cancer table, and what a Gaussian would have made."""
    figure, panels = new_figure(2)
    table = load_breast_cancer(as_frame=True)
    tumour = table.target.map({0: "malignant", 1: "benign"})
    model = tb.NaiveBayes().fit(table.data, tumour)
    tb.predictive_check(model, table.data, tumour).plot("area error", panels)
    return figure


def main() -> None:
    """Print what the training rows of Adult share and how the model differs from them, and what mending it brings."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    (train, y_train), (test, y_test) = adult("adult.data.gz"), adult("adult.test.gz")
    print(tb.dependence(train, y_train))
    print(tb.predictive_check(tb.NaiveBayes().fit(train, y_train), train, y_train))
    families = tb.suggest_columns(train, y_train).columns
    repeats = ("education_num", "relationship")
    models = {
        "auto": tb.NaiveBayes(),
        "families by evidence": tb.NaiveBayes(families),
        "and without the two repeats": tb.NaiveBayes({k: v for k, v in families.items() if k not in repeats}),
    }
    for name, model in models.items():
        found = tb.evaluate(model.fit(train, y_train), test, y_test)
        print(f"{name}: log-loss {found.log_loss.value:.3f}, accuracy {found.accuracy.value:.3f}")


if __name__ == "__main__":
    main()
