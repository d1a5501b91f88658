"""`tf.contrib`: a module, or a folder of modules, for each namespace.

They have names that neither TensorFlow, tf_keras nor tf_slim has. A name is admitted if public code
used it. Users reach it through `tpu_estimator_compat.v1`. Its row in `legacy/names` says which
module serves it; its proof is in `tests/old_names/contrib`. Nothing outside of this folder imports
it. Behaviour and defaults are those of TensorFlow 1.15.
"""
