"""Models and heads that TensorFlow brought ready: what `tf.estimator` had besides `Estimator`."""
