"""Inference: what counting alone cannot do, because something was not seen."""
