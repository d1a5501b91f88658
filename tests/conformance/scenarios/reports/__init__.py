"""Scenarios after public reports: what users did and asked about, each named in its docstring.

None was chosen by what this package does. Each runs with TensorFlow 2's behavior and without it.
"""
