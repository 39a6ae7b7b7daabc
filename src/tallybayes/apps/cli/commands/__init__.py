"""One file for every command of `tally`: its options, and what it does."""
