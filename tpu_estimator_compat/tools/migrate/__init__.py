"""Rewrites imports and dead names to `tpu_estimator_compat.v1`, and nothing else.

`scan` finds the dead names; `imports` and `names` rewrite them. A scan of the result finds the
places that neither can change safely.
"""
