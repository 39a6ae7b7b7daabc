"""Models of rows that come one after another: the last of them alone, or the older the less."""
