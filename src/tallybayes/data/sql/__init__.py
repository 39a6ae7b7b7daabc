"""Databases as data sources: dialects, queries and Spark."""
