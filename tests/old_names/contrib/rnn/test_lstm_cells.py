"""LSTMs with normalized weights and coupled gates."""

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("lstm_cells")
