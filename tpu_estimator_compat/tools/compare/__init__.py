"""Runs a training on two sides, an old and a new one, and judges whether it is the same."""
