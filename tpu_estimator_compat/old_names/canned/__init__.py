"""Canned models and heads of `tf.estimator`: tensorflow-estimator's code, on this Estimator."""
