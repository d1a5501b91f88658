"""Runs a script with two steps of each training, and nothing written but in a temporary folder."""
