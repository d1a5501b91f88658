"""Names that TensorFlow dropped, and how legacy code finds them.

`legacy` has the table of all names, the command `run` and the imports of legacy modules; `canned`
the canned models and heads of `tf.estimator`; `contrib` what is served of `tf.contrib`. Users
come in by `tpu_estimator_compat.v1`, by `install()`, or by `run`; tools read the table. Nothing
below imports this door. Begin with `legacy/table.py`.
"""
