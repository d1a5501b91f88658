"""Heads of TensorFlow 1."""

import numpy as np
import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import head as v1

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]


def test_a_head_of_ones_own_says_what_it_lacks():
    class Bare(v1._Head):
        name, logits_dimension = None, 1

        def create_loss(self, features, mode, logits, labels):
            return None

    with pytest.raises(NotImplementedError, match="must implement `create_estimator_spec"):
        Bare().create_estimator_spec({}, "train", X)
