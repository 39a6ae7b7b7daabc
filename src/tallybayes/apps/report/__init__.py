"""Report on a fitted classifier and its predictions for some rows, as one HTML page."""

from tallybayes.apps.report.html_report import Report, report

__all__ = ["Report", "report"]
