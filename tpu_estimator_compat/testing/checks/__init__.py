"""The checks of `tpu_estimator_compat.testing`, one module each; all raise AssertionError.

Each runs the model_fn (`testing/running.py`), compares, and looks in the captured graph for the
line at fault (`evidence.py`). Begin with `learns.py`.
"""
