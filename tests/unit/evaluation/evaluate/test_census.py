"""Evaluation on the census data (adult), as a whole and by sex, beside scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("tables")

ADULT = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
]


def adult(name):
    frame = pd.read_csv(
        DATA / "tables" / name, names=ADULT, skipinitialspace=True, na_values="?", keep_default_na=False, comment="|"
    )
    return frame.assign(income=frame["income"].str.rstrip("."))


@pytest.fixture(scope="module")
def model_and_test():
    return tb.NaiveBayes().fit(adult("adult.data.gz"), "income"), adult("adult.test.gz")


@pytest.mark.slow
def test_adult_by_sex(model_and_test):
    model, test = model_and_test
    found = tb.evaluate(model, test, "income", by="sex")
    assert found.n_rows == 16_281
    assert found.accuracy.value == model.score(test, "income")
    proba = model.predict_proba(test)
    odds = np.diff(model.predict_log_proba(test), axis=1)
    assert found.roc_auc.value == pytest.approx(roc_auc_score(test["income"] == ">50K", odds), abs=1e-12)
    # some hundred probabilities round to 1, where scikit-learn sees ties
    assert (proba[:, 1] == 1).sum() > 100
    assert found.roc_auc.value == pytest.approx(roc_auc_score(test["income"] == ">50K", proba[:, 1]), abs=1e-4)
    assert list(found.groups) == ["Female", "Male"]
    for sex, part in found.groups.items():
        rows = test["sex"] == sex
        truth, guess = test["income"][rows], model.predict(test[rows])
        (tn, fp), (fn, tp) = confusion_matrix(truth, guess)
        assert part.confusion_matrix.tolist() == [[tn, fp], [fn, tp]]
        assert part.recall[">50K"].value == pytest.approx(tp / (tp + fn))
        assert part.false_positive_rate[">50K"].value == pytest.approx(fp / (fp + tn))
        log_proba = model.predict_log_proba(test[rows])
        own = log_proba[np.arange(len(truth)), np.searchsorted(model.classes_, truth)]
        assert part.log_loss.value == pytest.approx(-own.mean(), rel=1e-9)
        assert part.log_loss.value > log_loss(truth, proba[rows])  # which takes no probability for less than 2e-16
    women, men = found.groups["Female"], found.groups["Male"]
    # the model errs more often on men, and far more often calls one of them rich who is not: no chance result
    assert women.error_rate.high < men.error_rate.low
    assert women.false_positive_rate[">50K"].high < men.false_positive_rate[">50K"].low
    assert "Female" in repr(found)


def test_adult_weighted_and_with_missing_groups(model_and_test):
    model, test = model_and_test
    found = tb.evaluate(model, test, "income", by="workclass", sample_weight="fnlwgt")
    right = model.predict(test) == test["income"]
    assert found.accuracy.value == pytest.approx(np.average(right, weights=test["fnlwgt"]))
    assert list(found.groups)[-1] is None
    assert found.groups[None].n_rows == test["workclass"].isna().sum() > 900
    assert found.effective_rows < 0.8 * found.n_rows
