"""`tpu_estimator_compat.v1`: see legacy/."""
