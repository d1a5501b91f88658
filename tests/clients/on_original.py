"""Runs a client's script on TensorFlow 2.15, whose TPUEstimator is the original.

`on_original.py MODULE --flag=value ...`, with the interpreter of the parity environment. 2.15 has
no `tf.contrib` and another meaning of `tensorflow`; so the script is shown `tf.compat.v1`, and for
the few names of contrib that these scripts use, where 2.15 and tf-slim have them. Nothing here is
this package's.
"""

import runpy
import sys
import types

import tensorflow as tf
import tf_slim
from tensorflow.python.ops.ref_variable import RefVariable

v1 = tf.compat.v1
tpu = types.ModuleType("tensorflow.contrib.tpu")
tpu.__dict__.update(vars(v1.estimator.tpu), CrossShardOptimizer=v1.tpu.CrossShardOptimizer)
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

assign = RefVariable.assign


def assign_last(self, *args, **kwargs):
    """BERT raises the step beside its updates, whose learning rate reads the step: a race.

    Here the updates come first, as they do in most runs.
    """
    updates = [op for op in self.graph.get_operations() if op.name == "group_deps"]
    last = updates if self.op.name == "global_step" else []
    with tf.control_dependencies(last):
        return assign(self, *args, **kwargs)


RefVariable.assign = assign_last

del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
