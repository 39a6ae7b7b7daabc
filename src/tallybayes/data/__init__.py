"""Sources: anything countable. The only place that knows what a data type is."""
