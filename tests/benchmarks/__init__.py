"""Benchmarks: this package against a bare loop, Keras `fit`, and the original, as ratios."""
