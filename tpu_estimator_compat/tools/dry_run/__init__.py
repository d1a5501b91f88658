"""Runs a script with two steps per training, and temporary folders in place of its own."""
