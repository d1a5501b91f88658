"""Runs a client's script on TensorFlow 2.15, whose TPUEstimator is the original.

`on_original.py MODULE --flag=value ...`, with the interpreter of the parity environment. 2.15 has
no `tf.contrib` and another meaning of `tensorflow`; so the script is shown `tf.compat.v1`, and for
the few names of contrib that these scripts use, where 2.15 and tf-slim have them. Nothing here is
this package's.
"""

import functools
import runpy
import sys
import types

import tensorflow as tf
import tf_slim

v1 = tf.compat.v1
tpu = types.ModuleType("tensorflow.contrib.tpu")
tpu.__dict__.update(vars(v1.estimator.tpu), CrossShardOptimizer=v1.tpu.CrossShardOptimizer)
# BERT raises the step beside its updates, whose learning rate reads the step: a race. One thread
# makes what is ready in the order in which it became so, and that is the reads first.
in_order = v1.ConfigProto(inter_op_parallelism_threads=1)
tpu.RunConfig = functools.partial(tpu.RunConfig, session_config=in_order)
contrib = types.ModuleType("tensorflow.contrib")
contrib.__dict__.update(
    cluster_resolver=tf.distribute.cluster_resolver,
    data=v1.data.experimental,
    layers=tf_slim.layers,
    tpu=tpu,
)
v1.disable_v2_behavior()
v1.contrib = contrib
sys.modules.update({"tensorflow": v1, "tensorflow.contrib": contrib})

del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
