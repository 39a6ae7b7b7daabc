"""Files and plain numbers of Bayesian networks: BIF, JSON, CPTs."""
