"""Hypothesis draws the same examples every time; ``--hypothesis-profile=thorough`` looks further."""

from hypothesis import HealthCheck, settings

slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, max_examples=15, suppress_health_check=slow
)
settings.register_profile("thorough", database=None, deadline=None, max_examples=300, suppress_health_check=slow)
settings.load_profile("repeatable")
