import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import opt


def test_other_variables_are_refused():
    with tf.Graph().as_default():
        variable = tf.Variable(1.0, use_resource=False, name="v")
        optimizer = opt.AdamWOptimizer(0.1)
        with pytest.raises(NotImplementedError, match="resource variables only"):
            optimizer.minimize(variable * 2.0)
