"""Calibration of class probabilities: temperature scaling and isotonic regression."""
