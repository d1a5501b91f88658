"""Model: a perceptron so small that little but the cost of the loop itself is left to time."""

import functools

from benchmarks.models import mlp

NAME, OPTIMIZER = "small", "adam"
BATCH = 16
WIDTHS = (16, 32, 4)

examples = functools.partial(mlp.examples, widths=WIDTHS)
logits = functools.partial(mlp.logits, widths=WIDTHS)
