"""The `keras.Model` behind an estimator: its modes, variables and metrics."""
