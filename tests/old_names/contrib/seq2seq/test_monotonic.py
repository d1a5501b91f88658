from __future__ import annotations

import itertools

import numpy as np
import pytest

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import BATCH, TIME, softmax, values


@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_attends_monotonically(mode: str) -> None:
    """At each time that is reached, it stops with a probability, or goes on to the next."""
    random = np.random.RandomState(1)
    stops = random.rand(BATCH, TIME).astype(np.float32)
    previous = softmax(random.randn(BATCH, TIME)).astype(np.float32)
    if mode == "hard":
        stops = np.round(stops)
        previous = np.eye(TIME, dtype=np.float32)[random.randint(0, TIME, BATCH)]
    expected = np.zeros((BATCH, TIME))
    for b, start in itertools.product(range(BATCH), range(TIME)):
        reached = previous[b, start]
        for t in range(start, TIME):
            expected[b, t] += reached * stops[b, t]
            reached *= 1 - stops[b, t]
    found = values(lambda: seq2seq.monotonic_attention(stops, previous, mode))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
