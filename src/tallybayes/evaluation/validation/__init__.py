"""Cross-validation, model selection, learning curves and prequential evaluation."""
