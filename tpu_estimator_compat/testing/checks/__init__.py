"""The checks of `tpu_estimator_compat.testing`, one module each; all raise AssertionError.

Most run the model_fn (`testing/running.py`), compare, and look in the captured graph for the line
at fault (`evidence.py`). Begin with `learns.py`.
"""
