"""Calls a model_fn: its arguments, its context, what it returns."""
