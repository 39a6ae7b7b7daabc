"""Statistics: frozen arrays that add, subtract and scale; the only form in which data are kept."""
