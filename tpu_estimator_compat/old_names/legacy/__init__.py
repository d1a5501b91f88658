"""Names that TensorFlow dropped: the table of names, and the tools made from it.

`table` reads `names/*.csv`. The namespaces of `tpu_estimator_compat.v1`, the imports of unchanged
scripts, the codemod, the scan, and a page of the migration guide use its rows. Reading the table
needs no TensorFlow.
"""
