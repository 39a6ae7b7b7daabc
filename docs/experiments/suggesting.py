"""Families by evidence on the Adult census table: ``python docs/experiments/suggesting.py``.

The families are suggested from the training rows alone; log loss and accuracy are those of the test rows.
"""

from __future__ import annotations

from adult import adult
from real_data import DATA

import tallybayes as tb


def main() -> None:
    """Print the suggestion, the comparison by evidence, and how both models do on the test rows."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    (train, y_train), (test, y_test) = adult("adult.data.gz"), adult("adult.test.gz")
    found = tb.suggest_families(train, y_train)
    print(found)
    models = {
        "auto": tb.NaiveBayes().fit(train, y_train),
        "auto, without what repeats": tb.NaiveBayes(dict.fromkeys(found.columns, "auto")).fit(train, y_train),
        "suggest": tb.NaiveBayes("suggest").fit(train, y_train),
    }
    gain = sum(one.gain for one in found.details.values()) / len(y_train)
    print(f"{gain:.1f} bits a row better than by types")
    for name, model in models.items():
        result = tb.evaluate(model, test, y_test)
        print(f"{name}: log loss {result.log_loss.value:.3f}, accuracy {result.accuracy.value:.3f}")


if __name__ == "__main__":
    main()
