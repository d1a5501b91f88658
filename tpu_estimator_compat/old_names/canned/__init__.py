"""Canned models and heads of `tf.estimator`: those of the package tensorflow-estimator, on ours."""
