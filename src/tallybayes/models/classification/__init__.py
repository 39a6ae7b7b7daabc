"""Models that tell classes apart."""
