"""Log-probabilities of rows under estimated factors."""
