"""One-dependence classifiers: averaged (AODE) and tree-augmented naive Bayes (TAN)."""
