"""Naive Bayes as a textbook writes it, one cell at a time, with SciPy's distributions: slow, plain, independent."""

import math
from collections import Counter

import numpy as np
from scipy import stats


def present(value):
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def of_class(column, labels, label):
    return [value for value, other in zip(column, labels, strict=True) if other == label and present(value)]


def label_log_prob(column, labels, label, value, estimate):
    """A categorical cell: frequencies, or add-one smoothing over the levels that were seen in any class."""
    levels = {v for v in column if present(v)}
    if not present(value) or value not in levels:
        return 0.0
    seen = Counter(of_class(column, labels, label))
    extra = 0 if estimate in ("mle", "unbiased") else 1
    share = (seen[value] + extra) / (seen.total() + extra * len(levels))
    return math.log(share) if share > 0 else -math.inf


def binary_log_prob(column, labels, label, value, estimate):
    if not present(value):
        return 0.0
    mine = of_class(column, labels, label)
    extra = 0 if estimate in ("mle", "unbiased") else 1
    share = (mine.count(value) + extra) / (len(mine) + 2 * extra)
    return math.log(share) if share > 0 else -math.inf


def event_log_prob(column, labels, label, value, estimate):
    """A Poisson cell; the default prior is one row at the pooled mean (Σx + ½)/(N + 1)."""
    if not present(value):
        return 0.0
    mine, everything = of_class(column, labels, label), [v for v in column if present(v)]
    pooled = (sum(everything) + 0.5) / (len(everything) + 1)
    if estimate in ("mle", "unbiased"):
        return stats.poisson.logpmf(value, sum(mine) / len(mine))
    rate = 1 + len(mine)
    if estimate == "map":
        return stats.poisson.logpmf(value, (1 + pooled + sum(mine) - 1) / rate)
    return stats.nbinom.logpmf(value, pooled + sum(mine), rate / (1 + rate))


def number_log_prob(column, labels, label, value, estimate, tied=False):
    """A Gaussian cell; the default prior is the normal-inverse-gamma of the design."""
    if not present(value):
        return 0.0
    classes = sorted(set(labels))
    groups = {c: np.array(of_class(column, labels, c)) for c in classes}
    groups = {c: x for c, x in groups.items() if len(x)}
    mine, everything = groups[label], np.concatenate(list(groups.values()))
    within = sum(((x - x.mean()) ** 2).sum() for x in groups.values())
    n, n_groups = len(everything), len(groups)
    if estimate in ("mle", "unbiased"):
        spent = estimate == "unbiased"
        own = ((mine - mine.mean()) ** 2).sum() / (len(mine) - spent)
        variance = within / (n - spent * n_groups) if tied else own
        return stats.norm.logpdf(value, mine.mean(), math.sqrt(variance))
    total, freedom = ((everything - everything.mean()) ** 2).sum() / n, n - n_groups
    inner = within / freedom if freedom > 0 else total
    typical = inner * min(total / inner, 1000) ** (8 / (freedom + 8)) if inner > 0 else total / (freedom + 1)
    strength, shape = 0.01, 1.5
    scale = typical * (1.5 if estimate == "bayes" else 2.5 + (n_groups if tied else 1) / 2)
    location = {c: (strength * everything.mean() + x.sum()) / (strength + len(x)) for c, x in groups.items()}
    pull = {
        c: ((x - x.mean()) ** 2).sum() + strength * len(x) / (strength + len(x)) * (x.mean() - everything.mean()) ** 2
        for c, x in groups.items()
    }
    rows = n if tied else len(mine)
    shape, scale = shape + rows / 2, scale + (sum(pull.values()) if tied else pull[label]) / 2
    if estimate == "map":  # the joint mode of all means and the variance
        variance = scale / (shape + 1 + (n_groups if tied else 1) / 2)
        return stats.norm.logpdf(value, location[label], math.sqrt(variance))
    widened = scale / shape * (1 + 1 / (strength + len(mine)))
    return stats.t.logpdf(value, 2 * shape, location[label], math.sqrt(widened))


CELL = {"label": label_log_prob, "binary": binary_log_prob, "event": event_log_prob, "number": number_log_prob}


def joint_log_prob(columns, kinds, labels, rows, estimate, log_prior=None):
    """log p(class, row): an array (rows, classes), classes sorted."""
    classes = sorted(set(labels))
    out = np.zeros((len(rows), len(classes)))
    for k, label in enumerate(classes):
        share = label_log_prob(labels, [0] * len(labels), 0, label, estimate) if log_prior is None else log_prior[k]
        for i, row in enumerate(rows):
            terms = [
                CELL[kind](column, labels, label, value, estimate)
                for column, kind, value in zip(columns, kinds, row, strict=True)
            ]
            out[i, k] = share + math.fsum(terms) if -math.inf not in terms else -math.inf
    return out
