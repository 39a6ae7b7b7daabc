"""Choosing among classifiers, and mixing them: what is tried, how it is judged, and what comes of it."""
