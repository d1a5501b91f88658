from __future__ import annotations

import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import END, values


def test_traces_beams_back() -> None:
    random = np.random.RandomState(1)
    time, batch, width = 6, 4, 3
    ids = random.randint(0, 5, (time, batch, width))
    parents = random.randint(0, width, (time, batch, width))
    lengths = np.array([6, 3, 0, 5])
    expected = np.full((time, batch, width), END)
    for b, k in itertools.product(range(batch), range(width)):
        beam = k
        for t in reversed(range(lengths[b])):
            expected[t, b, k] = ids[t, b, beam]
            beam = parents[t, b, beam]
        ends = np.flatnonzero(expected[:, b, k] == END)
        if len(ends):
            expected[ends[0] :, b, k] = END
    found = values(
        lambda: seq2seq.gather_tree(
            tf.constant(ids, tf.int32), tf.constant(parents, tf.int32), lengths, END
        )
    )
    assert (found == expected).all()
