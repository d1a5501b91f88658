"""Feature columns of `tf.contrib.layers`."""

import pytest
from support.proofs.contrib import feature_columns as proofs
from support.proofs.proving import each_proof_of

import tpu_estimator_compat.v1 as tf

test_served_names = each_proof_of(proofs)


def test_a_crossed_column_of_a_checkpoint_is_refused():
    with pytest.raises(ValueError, match=r"init_from_checkpoint"):
        tf.contrib.layers.crossed_column(["a", "b"], 3, ckpt_to_load_from="path")
