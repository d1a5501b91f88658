import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves


@proves("tf.contrib.metrics")
def measures(metrics):
    def build():
        return metrics.streaming_accuracy(tf.constant([1, 2]), tf.constant([1, 3]))[1]

    assert evaluate(build) == 0.5
    assert evaluate(lambda: metrics.confusion_matrix([0, 1], [0, 0])).tolist() == [[1, 0], [1, 0]]
    x = [1.0, 2.0, 4.0]
    correlation = evaluate(
        lambda: metrics.streaming_pearson_correlation(tf.constant(x), tf.constant(x))[1]
    )
    np.testing.assert_allclose(correlation, 1.0, rtol=1e-5)
