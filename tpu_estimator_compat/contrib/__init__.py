"""`tf.contrib`, a module per namespace: what neither TensorFlow, tf_keras nor tf_slim has.

Users reach these through `tpu_estimator_compat.v1`; the table in `legacy/names` says which stands
for which name. Behaviour and defaults are those of TensorFlow 1.15.
"""
