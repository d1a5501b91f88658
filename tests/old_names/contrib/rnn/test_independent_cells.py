"""Cells whose units do not see each other."""

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("independent_cells")
