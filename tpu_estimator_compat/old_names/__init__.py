"""Names that TensorFlow dropped, and the imports by which legacy code finds them.

`legacy` has the table of all names, the command `run` and the imports of legacy modules; `canned`
has the canned models and heads of `tf.estimator`; `contrib` has the supported part of `tf.contrib`.
Users get the names by `tpu_estimator_compat.v1`, `install()` or `run`; tools read the table. No
lower layer imports this door. Begin with `legacy/table.py`.
"""
