"""Layers of cells: what normalizes."""

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("cell_layers")
