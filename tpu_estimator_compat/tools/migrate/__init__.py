"""Rewrites imports and dead names to `tpu_estimator_compat.v1`, and nothing else.

`scan` finds the dead names; each rule of `rules` rewrites one kind of statement or expression, with
libcst, which keeps every other byte.
"""
