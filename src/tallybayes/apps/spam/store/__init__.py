"""Storage of the spam filter: counts, messages and maintenance."""
