"""Add-one beside the empirical prior on rows kept back: ``python docs/experiments/empirical.py``.

Adult as it is, SMS messages and 20 Newsgroups as counts of words. The test rows take no part in finding the prior.
"""

from __future__ import annotations

import math
import time

from calibrating import tables
from real_data import DATA

import tallybayes as tb


def main() -> None:
    """Print the evidence of the training rows, and accuracy and log loss on the test rows."""
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing to measure.")
        return
    print(f"{'table':<14}{'prior':<12}{'evidence (bits)':>16}{'accuracy':>10}{'log loss':>10}{'seconds':>9}")
    for name, columns, X, y, test, answers in tables():
        for prior in (1, "empirical"):
            start = time.perf_counter()
            model = tb.NaiveBayes(columns, prior=prior).fit(X, y)
            bits = model.log_evidence() / math.log(2)
            seconds = time.perf_counter() - start
            found = tb.evaluate(model, test, answers)
            print(
                f"{name:<14}{prior!s:<12}{bits:>16,.0f}{found.accuracy.value:>10.4f}"
                f"{found.log_loss.value:>10.4f}{seconds:>9.2f}"
            )


if __name__ == "__main__":
    main()
