"""Results of evaluations and models: text, HTML, data frames and plots."""
