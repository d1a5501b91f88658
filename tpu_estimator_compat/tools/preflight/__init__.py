"""Checks without the device that a model's step compiles for a TPU or GPU and fits its memory."""
