"""What the counts know: held-out scores, measures, comparisons, dependence."""
