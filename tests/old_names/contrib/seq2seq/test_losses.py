from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import BATCH, IDS, LENGTHS, TIME, close, softmax, values


def test_averages_and_sums_losses() -> None:
    random = np.random.RandomState(1)
    logits = random.randn(BATCH, TIME, IDS).astype(np.float32)
    targets = random.randint(0, IDS, (BATCH, TIME))
    weights = (np.arange(TIME) < LENGTHS[:, None]).astype(np.float32) * 2
    losses = -np.log(np.take_along_axis(softmax(logits), targets[..., None], -1))[..., 0] * weights

    def loss(time: str, batch: str) -> Any:
        options = {
            "average_across_timesteps": time == "average",
            "sum_over_timesteps": time == "sum",
            "average_across_batch": batch == "average",
            "sum_over_batch": batch == "sum",
        }
        return values(
            lambda: seq2seq.sequence_loss(
                tf.constant(logits), tf.constant(targets), tf.constant(weights), **options
            )
        )

    close(loss("average", "average"), losses.sum() / weights.sum())
    close(loss("sum", "sum"), losses.sum() / (weights > 0).sum())
    close(loss("average", "no"), losses.sum(1) / weights.sum(1))
    with np.errstate(invalid="ignore"):
        close(loss("no", "average"), np.nan_to_num(losses.sum(0) / weights.sum(0)))
        close(loss("no", "sum"), np.nan_to_num(losses.sum(0) / (weights > 0).sum(0)))
    close(loss("no", "no"), losses)
    with pytest.raises(ValueError, match="average_across_timesteps and sum_over_timesteps"):
        seq2seq.sequence_loss(
            tf.zeros([1, 1, 1]), tf.zeros([1, 1]), tf.zeros([1, 1]), sum_over_timesteps=True
        )
