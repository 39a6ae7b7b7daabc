"""The command `tally`: learn, ask, change and merge models from a shell."""
