"""Files in the Interchange Format for Bayesian networks."""
