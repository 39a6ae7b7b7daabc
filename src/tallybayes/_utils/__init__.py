"""Utilities that know nothing of statistics: frozen values, progress, text and HTML tables, atomic file writes."""
