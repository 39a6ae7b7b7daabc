"""Spam filter: naive Bayes over the distinct tokens of a mail. Counts are stored, no text."""
