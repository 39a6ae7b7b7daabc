"""Beliefs: distributions over parameters, priors before data and posteriors after."""
