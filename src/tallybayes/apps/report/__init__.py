"""The report: one HTML page about a model and what it says of some rows."""

from tallybayes.apps.report.html_report import Report, report

__all__ = ["Report", "report"]
