"""Analysis of Bayesian networks: d-separation, causal effects, sensitivity, value of information."""
