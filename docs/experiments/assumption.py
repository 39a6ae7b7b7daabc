"""The Adult table looked at: ``python docs/experiments/assumption.py``."""

from __future__ import annotations

from adult import adult
from real_data import DATA

import tallybayes as tb


def main() -> None:
    """Print what the training rows of Adult share and how the model differs from them, and what mending it brings."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    (train, y_train), (test, y_test) = adult("adult.data.gz"), adult("adult.test.gz")
    print(tb.dependence(train, y_train))
    print(tb.predictive_check(tb.NaiveBayes().fit(train, y_train), train, y_train))
    families = tb.suggest_families(train, y_train).columns
    repeats = ("education_num", "relationship")
    models = {
        "auto": tb.NaiveBayes(),
        "families by evidence": tb.NaiveBayes(families),
        "and without the two repeats": tb.NaiveBayes({k: v for k, v in families.items() if k not in repeats}),
    }
    for name, model in models.items():
        found = tb.evaluate(model.fit(train, y_train), test, y_test)
        print(f"{name}: log loss {found.log_loss.value:.3f}, accuracy {found.accuracy.value:.3f}")


if __name__ == "__main__":
    main()
