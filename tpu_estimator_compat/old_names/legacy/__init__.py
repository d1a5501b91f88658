"""Names that TensorFlow dropped: one table of them, and what is made from it.

`table` reads `names/*.csv`. From its rows come the namespaces of `tpu_estimator_compat.v1`, the
imports of scripts that run unchanged, the codemod, the scan, and a page of the migration guide.
Reading the table needs no TensorFlow.
"""
