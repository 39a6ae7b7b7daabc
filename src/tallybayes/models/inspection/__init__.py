"""Parameter tables, summaries and information criteria of fitted models."""
