"""Forests and boosted chains of trees whose leaves are counts."""
