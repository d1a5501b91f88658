"""The `keras.Model` behind an estimator: its modes, variables, metrics and weight map."""
