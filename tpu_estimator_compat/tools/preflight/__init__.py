"""Checks, without a TPU, that a model's step compiles for one and fits its memory."""
