"""Families: what a column, or a block of like columns, means. They hold settings, never data."""
