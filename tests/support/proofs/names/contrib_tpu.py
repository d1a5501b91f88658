"""Proofs of what TensorFlow itself still has of `tf.contrib.tpu`.

Operations that need a TPU are built, not run: their places in a graph are what is checked.
"""

import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, graph, proves

TPU = "tf.contrib.tpu"
DEEP = "tf.contrib.tpu.python.tpu"


def operations(build):
    """The types of the operations that `build` makes."""
    with graph() as new:
        build()
        return [operation.type for operation in new.get_operations()]


@proves(*below(TPU, "CrossShardOptimizer"), f"{DEEP}.tpu_optimizer.CrossShardOptimizer")
def has_the_optimizer(optimizer):
    def build():
        variable = tf.get_variable("v", initializer=1.0)
        optimizer(tf.train.GradientDescentOptimizer(0.1)).minimize(variable * 2.0)

    assert "ResourceApplyGradientDescent" in operations(build)


@proves(f"{DEEP}.tpu_optimizer")
def has_the_module_of_the_optimizer(module):
    has_the_optimizer(module.CrossShardOptimizer)


@proves(*below(TPU, "bfloat16_scope"))
def has_bfloat16(bfloat16_scope):
    def build():
        with bfloat16_scope():
            return tf.get_variable("v", [2], tf.bfloat16)

    with graph():
        assert build().dtype == tf.bfloat16
        assert tf.global_variables()[0].dtype.base_dtype == tf.float32


@proves(f"{DEEP}.bfloat16")
def has_the_module_of_bfloat16(module):
    has_bfloat16(module.bfloat16_scope)


@proves(*below(TPU, "cross_replica_sum"))
def adds_up(cross_replica_sum):
    assert "CrossReplicaSum" in operations(lambda: cross_replica_sum(tf.constant(1.0)))


@proves(f"{TPU}.python.ops.tpu_ops")
def has_operations(tpu_ops):
    adds_up(tpu_ops.cross_replica_sum)


@proves(*below(TPU, "outside_compilation"))
def runs_outside(outside_compilation):
    assert evaluate(lambda: outside_compilation(lambda x: x + 1, tf.constant(1))) == 2


@proves(*below(TPU, "rewrite"))
def rewrites(rewrite):
    types = operations(lambda: rewrite(lambda x: x + 1.0, [tf.constant(1.0)]))
    assert "TPUReplicateMetadata" in types


@proves(*below(TPU, "batch_parallel shard"))
def shards(shard):
    types = operations(lambda: shard(lambda x: x + 1.0, [tf.ones([2, 3])], num_shards=2))
    assert types.count("TPUReplicatedInput") >= 1


@proves(*below(TPU, "replicate"))
def replicates(replicate):
    types = operations(lambda: replicate(lambda x: x + 1.0, [[1.0], [2.0]]))
    assert "TPUReplicatedInput" in types


@proves(f"{DEEP}.tpu")
def has_the_module_of_rewrite(module):
    rewrites(module.rewrite)
    shards(module.shard)


@proves(*below(TPU, "core"))
def names_cores(core):
    assert core(3) == "device:TPU_REPLICATED_CORE:3"


@proves(*below(TPU, "initialize_system"))
def initializes(initialize_system):
    assert "ConfigureDistributedTPU" in operations(initialize_system)


@proves(*below(TPU, "shutdown_system"))
def shuts_down(shutdown_system):
    assert "ShutdownDistributedTPU" in operations(shutdown_system)


@proves(*below(TPU, "infeed_dequeue"))
def dequeues_infeed(dequeue):
    assert operations(lambda: dequeue(tf.float32, [2])) == ["InfeedDequeue"]


@proves(*below(TPU, "infeed_dequeue_tuple"))
def dequeues_infeed_tuples(dequeue):
    assert operations(lambda: dequeue([tf.float32], [[2]])) == ["InfeedDequeueTuple"]


@proves(*below(TPU, "infeed_enqueue"))
def enqueues_infeed(enqueue):
    assert "InfeedEnqueue" in operations(lambda: enqueue(tf.ones([2]), [2]))


@proves(*below(TPU, "infeed_enqueue_tuple"))
def enqueues_infeed_tuples(enqueue):
    assert "InfeedEnqueueTuple" in operations(lambda: enqueue([tf.ones([2])], [[2]]))


@proves(*below(TPU, "outfeed_dequeue"))
def dequeues_outfeed(dequeue):
    assert operations(lambda: dequeue(tf.float32, [2])) == ["OutfeedDequeue"]


@proves(*below(TPU, "outfeed_dequeue_tuple"))
def dequeues_outfeed_tuples(dequeue):
    assert operations(lambda: dequeue([tf.float32], [[2]])) == ["OutfeedDequeueTuple"]


@proves(*below(TPU, "outfeed_enqueue"))
def enqueues_outfeed(enqueue):
    assert "OutfeedEnqueue" in operations(lambda: enqueue(tf.ones([2])))


@proves(*below(TPU, "outfeed_enqueue_tuple"))
def enqueues_outfeed_tuples(enqueue):
    assert "OutfeedEnqueueTuple" in operations(lambda: enqueue([tf.ones([2])]))


@proves(*below(TPU, "InfeedQueue"))
def has_queues(queue):
    made = queue(tuple_types=[tf.float32], tuple_shapes=[[4, 2]])
    made.set_number_of_shards(2)
    assert made.number_of_shards == 2


@proves(f"{DEEP}.tpu_feed")
def has_the_module_of_queues(module):
    has_queues(module.InfeedQueue)


@proves(*below(TPU, "while_loop"))
def loops(while_loop):
    assert evaluate(lambda: while_loop(lambda i: i < 3, lambda i: i + 1, [0])) == [3]


@proves(*below(TPU, "repeat"))
def repeats(repeat):
    assert evaluate(lambda: repeat(5, lambda x: x + 2.0, [1.0])) == [11.0]


@proves(f"{DEEP}.training_loop")
def has_the_module_of_loops(module):
    repeats(module.repeat)


def system():
    """The topology of a TPU with two cores, as its coordinates."""
    from tensorflow.python.tpu.topology import Topology

    return Topology(mesh_shape=[1, 1, 1, 2], device_coordinates=[[[0, 0, 0, 0], [0, 0, 0, 1]]])


@proves(*below(TPU, "Topology"))
def knows_the_mesh(topology_class):
    assert topology_class(system().serialized()).num_tpus_per_task == 2


@proves(f"{DEEP}.topology")
def has_the_module_of_the_mesh(module):
    knows_the_mesh(module.Topology)


@proves(*below(TPU, "DeviceAssignment"))
def places(assignment):
    assert assignment.build(system(), num_replicas=2).num_replicas == 2


@proves(*below(TPU, "device_assignment"))
def assigns(device_assignment):
    assert device_assignment(system(), num_replicas=2).num_replicas == 2


@proves(f"{DEEP}.device_assignment")
def has_the_module_of_assignments(module):
    assigns(module.device_assignment)


@proves(f"{DEEP}.tpu_function")
def has_shard_contexts(module):
    with module.tpu_shard_context(4):
        assert module.get_tpu_context().number_of_shards == 4


@proves(f"{DEEP}.feature_column")
def has_columns(module):
    ids = tf.feature_column.categorical_column_with_identity("ids", 4)
    assert module.embedding_column(ids, 3).dimension == 3


@proves(f"{DEEP}.tensor_tracer")
def has_the_tracer(module):
    assert module.TensorTracer.is_enabled() is False


@proves(f"{DEEP}.tpu_system_metadata")
def has_metadata(module):
    assert module.TPUSystemMetadata(8, 1, 8, None, []).num_cores == 8


@proves(f"{TPU}.proto.compilation_result_pb2")
def has_messages(module):
    message = module.CompilationResultProto(status_error_message="no")
    parsed = module.CompilationResultProto.FromString(message.SerializeToString())
    assert parsed.status_error_message == "no"


@proves(f"{DEEP}.datasets")
def has_datasets(module):
    assert callable(module.StreamingFilesDataset)


@proves(f"{DEEP}.tpu_sharding")
def has_policies(module):
    policy = module.ShardingPolicy()
    policy.set_number_of_shards(4)
    policy.set_shard_dimension(0)
    assert policy.get_sharded_shape([8, 2]) == [2, 2]
