"""What a classifier answers besides the class."""
