"""Inference in hidden Markov models: decoding, filtering, smoothing, forecasting."""
