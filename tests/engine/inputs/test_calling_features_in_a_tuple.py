"""An input_fn may return ((a, b), None): both are features, and there are no labels."""

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as tf_estimator


def test_a_pair_of_features_without_labels(tmp_path):
    seen = []

    def model_fn(features, labels, mode):
        seen.append((type(features), len(features), labels))
        a, b = features
        total = tf.reduce_sum(a, axis=1) + b
        if mode == tf_estimator.ModeKeys.PREDICT:
            return tf_estimator.EstimatorSpec(mode, predictions={"total": total})
        step = tf.train.get_global_step()
        return tf_estimator.EstimatorSpec(
            mode, loss=tf.reduce_mean(total), train_op=step.assign_add(1)
        )

    def input_fn():
        return (tf.ones([4, 2]), tf.constant([1.0, 2.0, 3.0, 4.0])), None

    def finite():
        x, y = np.ones([4, 2], np.float32), np.arange(4, dtype=np.float32)
        data = tf_estimator.inputs.numpy_input_fn(x, y, batch_size=4, shuffle=False)()
        return data, None

    est = tf_estimator.Estimator(model_fn, str(tmp_path))
    est.train(input_fn, steps=1)
    found = [float(p["total"]) for p in est.predict(finite)]
    assert found == [2.0, 3.0, 4.0, 5.0]
    assert seen == [(tuple, 2, None), (tuple, 2, None)]
