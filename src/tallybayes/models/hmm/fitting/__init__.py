"""Fitting of hidden Markov models: counting, Baum-Welch, initialization."""
