import pytest

import tpu_estimator_compat.v1 as tf


def test_a_crossed_column_of_a_checkpoint_is_refused():
    with pytest.raises(ValueError, match=r"init_from_checkpoint"):
        tf.contrib.layers.crossed_column(["a", "b"], 3, ckpt_to_load_from="path")
