"""`tf.contrib.tpu` and its deep modules; and resolvers and strategies.

Operations that need a TPU are built, not run: their places in a graph are what is checked.
"""

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding, topology

from ..proofs import below, evaluate, graph, proves

TPU = "tf.contrib.tpu"
DEEP = "tf.contrib.tpu.python.tpu"


def operations(build):
    """The types of the operations that `build` makes."""
    with graph() as new:
        build()
        return [operation.type for operation in new.get_operations()]


def input_fn(params):
    dataset = tf2.data.Dataset.from_tensors(([1.0], [2.0])).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def trains(estimator_class, folder, hooks=()):
    config = tpu.RunConfig(
        model_dir=str(folder), tpu_config=tpu.TPUConfig(2), log_step_count_steps=2
    )
    estimator = estimator_class(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(input_fn, steps=4, hooks=[make(estimator) for make in hooks])
    assert estimator.get_variable_value("weight") > 1.0
    return estimator


@proves(*below(TPU, "TPUConfig"))
def configures(config):
    assert config(iterations_per_loop=7).iterations_per_loop == 7


@proves(*below(TPU, "RunConfig"))
def configures_runs(config):
    assert config(tpu_config=tpu.TPUConfig(3)).tpu_config.iterations_per_loop == 3


@proves(*below(TPU, "InputPipelineConfig"))
def has_modes(config):
    assert tpu.TPUConfig(per_host_input_for_training=config.PER_HOST_V2)


@proves(*below(TPU, "TPUEstimator"))
def has_the_estimator(estimator, tmp_path):
    trains(estimator, tmp_path)


@proves(*below(TPU, "TPUEstimatorSpec"))
def has_specs(spec):
    assert spec(tpu.ModeKeys.PREDICT, predictions={"x": tf.constant(1)}).mode == "infer"


@proves(*below(DEEP, "tpu_config tpu_estimator"), "tf.python.tpu.tpu_config")
@proves("tf.python.tpu.tpu_estimator", "tf.estimator.tpu")
@proves("tensorflow_estimator.python.estimator.tpu", "tf.python.estimator.tpu")
@proves(*below("tensorflow_estimator.python.estimator.tpu", "tpu_config tpu_estimator"))
@proves(*below("tf.python.estimator.tpu", "tpu_config tpu_estimator"))
def has_all_of_the_estimator(module):
    config = module.RunConfig(tpu_config=module.TPUConfig(iterations_per_loop=5))
    estimator = module.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=2)
    assert estimator.config.tpu_config.iterations_per_loop == 5
    assert module.TPUEstimatorSpec("infer", predictions={"x": tf.constant(1)}).mode == "infer"


@proves(f"{DEEP}.tpu_context", "tf.python.tpu.tpu_context")
@proves("tensorflow_estimator.python.estimator.tpu.tpu_context")
@proves("tf.python.estimator.tpu.tpu_context")
def has_contexts(tpu_context, tmp_path):
    seen = []

    def looking_input_fn(params):
        seen.append(params["context"])
        return input_fn(params)

    config = tpu.RunConfig(model_dir=str(tmp_path), master="")
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(looking_input_fn, steps=1)
    # Off TPU a context is given only where the original gave one.
    assert all(isinstance(context, tpu_context.TPUContext) for context in seen)
    assert seen


@proves(*below(TPU, "export_estimator_savedmodel"))
def exports(export, tmp_path):
    estimator = trains(tpu.TPUEstimator, tmp_path)

    def predicting(features, mode, params):
        weight = tf.get_variable("weight", [])
        return tpu.TPUEstimatorSpec(mode, predictions={"y": features["x"] * weight})

    predictor = tpu.TPUEstimator(
        predicting,
        config=tpu.RunConfig(model_dir=estimator.model_dir),
        use_tpu=False,
        train_batch_size=4,
        export_to_tpu=False,
    )
    receiver = tpu.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.TensorSpec([None], tf.float32)}
    )
    path = export(predictor, str(tmp_path / "exports"), receiver)
    assert tf.saved_model.contains_saved_model(path.decode())


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


@proves(f"{TPU}.AsyncCheckpointSaverHook", f"{DEEP}.async_checkpoint.AsyncCheckpointSaverHook")
@proves("tf.python.tpu.async_checkpoint.AsyncCheckpointSaverHook")
def saves(hook, tmp_path):
    other = tmp_path / "other"

    def make(estimator):
        del estimator
        return hook(str(other), save_steps=2)

    trains(tpu.TPUEstimator, other, [make])
    assert tf.train.latest_checkpoint(str(other)) == str(other / "model.ckpt-4")


@proves(f"{TPU}.TPUInMemoryEvalHook")
def evaluates_in_memory(hook, tmp_path):
    hooks = []

    def model_with_eval(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec if mode == "train" else tpu.TPUEstimatorSpec(mode, loss=spec.loss)

    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(2))
    estimator = tpu.TPUEstimator(
        model_with_eval, config=config, use_tpu=True, train_batch_size=4, eval_batch_size=4
    )
    hooks.append(hook(estimator, input_fn, steps=1, every_n_iter=2))
    estimator.train(input_fn, steps=4, hooks=hooks)
    assert list(tmp_path.glob("eval/*tfevents*"))


RESOLVERS = "tf.contrib.cluster_resolver"


@proves(f"{RESOLVERS}.TPUClusterResolver", "tf.distribute.cluster_resolver.TPUClusterResolver")
def resolves(resolver_class, tmp_path):
    for resolver in (resolver_class(""), resolver_class(), resolver_class(tpu=[""])):
        assert isinstance(resolver, topology.LocalResolver)
        assert resolver.master() == ""
        assert not resolver  # scripts ask `if resolver:` whether there is a TPU
        config = tpu.RunConfig(cluster=resolver, model_dir=str(tmp_path))
        assert config.master == ""
        assert config.session_config.allow_soft_placement
    assert resolver_class("").cluster_spec() is None
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
        resolver_class().cluster_spec()
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(input_fn, steps=2)
    with pytest.raises(NotImplementedError, match="multiple TPUs"):
        resolver_class(["a", "b"])
    real = resolver_class("grpc://10.0.0.1:8470")
    assert type(real) is tf2.distribute.cluster_resolver.TPUClusterResolver
    assert real.master() == "grpc://10.0.0.1:8470"


@proves(RESOLVERS)
@proves(*below(f"{RESOLVERS}.python.training", ". cluster_resolver tpu_cluster_resolver"))
def has_resolvers(module):
    spec = tf2.train.ClusterSpec({"worker": ["a:1"]})
    assert module.SimpleClusterResolver(spec).cluster_spec() == spec
    assert module.TPUClusterResolver("").get_master() == ""


STRATEGIES = "tf.contrib.distribute"


@proves(STRATEGIES)
@proves(
    *below(
        f"{STRATEGIES}.python",
        "collective_all_reduce_strategy mirrored_strategy one_device_strategy tpu_strategy",
    )
)
def has_strategies(module):
    assert module.MirroredStrategy(["/cpu:0", "/cpu:1"]).num_replicas_in_sync == 2
    assert module.MirroredStrategy(num_gpus=0).num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="Must only specify one"):
        module.MirroredStrategy(["/cpu:0"], num_gpus=1)
    with pytest.raises(ValueError, match="cannot specify both"):
        module.MirroredStrategy(num_gpus=0, num_gpus_per_worker=0)
    assert module.OneDeviceStrategy("/cpu:0").num_replicas_in_sync == 1
    assert module.get_tower_context is module.get_replica_context
    assert module.get_cross_tower_context() is None
    strategy = module.TPUStrategy(topology.LocalResolver(), steps_per_run=5)
    assert strategy.steps_per_run == 5
    assert strategy.cluster_resolver is None
    assert module.get_cross_replica_context() is None
    with module.OneDeviceStrategy("/cpu:0").scope():
        assert module.get_cross_replica_context() is module.get_distribution_strategy()
    with pytest.raises(RuntimeError, match="replica context"):
        module.require_replica_context(None)


EMBEDDING_PLACES = [
    "tensorflow_estimator.python.estimator.tpu",
    "tf.python.estimator.tpu",
    "tf.python.tpu",
]


@proves(
    "tf.estimator.tpu.experimental.EmbeddingConfigSpec",
    *(f"{place}.tpu_estimator.EmbeddingConfigSpec" for place in EMBEDDING_PLACES),
)
def describes_tables(spec_class):
    ids = tf.feature_column.categorical_column_with_identity("ids", 4)
    column = tf.tpu.experimental.embedding_column(ids, 3)
    spec = spec_class([column], optimization_parameters=embedding.AdagradParameters(0.1))
    assert spec.feature_columns == [column]
    assert spec.partition_strategy == "div"


@proves("tf.estimator.tpu.experimental")
def has_the_spec_of_tables(module):
    describes_tables(module.EmbeddingConfigSpec)


@proves(
    *below(
        "tf.tpu.experimental",
        "AdagradParameters AdamParameters FtrlParameters StochasticGradientDescentParameters",
    ),
    *(
        f"{place}.tpu_estimator.{name}Parameters"
        for place in EMBEDDING_PLACES
        for name in ("Adagrad", "Adam", "StochasticGradientDescent")
    ),
)
def has_a_learning_rate(parameters):
    assert parameters(0.1, clip_weight_max=2.0).learning_rate == 0.1
    assert parameters(0.1, clip_weight_max=2.0).clip_weight_max == 2.0


@proves(*(f"{place}._tpu_estimator_embedding" for place in EMBEDDING_PLACES))
def has_spec_and_optimizers(module):
    describes_tables(module.EmbeddingConfigSpec)
    has_a_learning_rate(module.FtrlParameters)


@proves("tf.python.tpu.tpu_embedding", f"{DEEP}.tpu_embedding")
def has_tables_features_and_optimizers(module):
    table = module.TableConfig(8, 2, optimization_parameters=module.RMSPropParameters(1, 0, 0, 1))
    assert table.combiner == "mean"
    assert module.FeatureConfig("table").max_sequence_length == 0
