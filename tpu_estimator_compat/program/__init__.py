"""Captured TF1 graphs as programs that replicas run; only this package knows that TF1 existed."""
