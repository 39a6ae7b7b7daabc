"""Utilities without statistics: frozen values, progress, text and HTML tables, atomic file writes."""
