"""Configurations and specs made by expressions, good ones and bad ones: what each call gives."""

import functools
import json
import os
import pathlib
import re

import tensorflow.compat.v1 as tf

_NAMES = {
    "tf": tf,
    "partial": functools.partial,
    "Path": pathlib.Path,
    "RunConfig": tf.estimator.RunConfig,
    "InputPipelineConfig": tf.estimator.tpu.InputPipelineConfig,
    "TPUConfig": tf.estimator.tpu.TPUConfig,
    "TPURunConfig": tf.estimator.tpu.RunConfig,
    "Spec": tf.estimator.EstimatorSpec,
    "TPUSpec": tf.estimator.tpu.TPUEstimatorSpec,
    "WarmStartSettings": tf.estimator.WarmStartSettings,
}
# Ours alone, and the original's mark of the distribute coordinator, which is not used here.
_NOT_COMPARED = {"jit_compile", "runtime", "save_input_state", "distribute_coordinator_mode"}


def _each(record, expressions):
    """Records what each gives, in a graph of its own; errors without white space."""
    for text in expressions:
        with tf.Graph().as_default():
            own = {
                "one": tf.constant(1.0, name="one"),
                "pair": tf.constant([1.0, 2.0], name="pair"),
                "step": tf.no_op(name="step"),
            }
            try:
                record(text, _shown(eval(text, {**globals(), **_NAMES, **own})))
            except Exception as error:  # the original lacks spaces here and there
                words = re.sub(r" at 0x[0-9a-f]+", "", str(error))
                record(text, type(error).__name__, ValueError("".join(words.split())))


def _shown(value):
    """`value` by structure; objects whose class differs on purpose by what they are."""
    if hasattr(value, "save_checkpoints_steps"):
        kind = type(value)
        public = {name for name in dir(kind) if isinstance(getattr(kind, name), property)}
        names = {name for name in public | set(vars(value)) if name.strip("_") not in _NOT_COMPARED}
        return {name: _shown(getattr(value, name)) for name in sorted(names)}
    if hasattr(value, "_asdict"):
        return [type(value).__name__, _shown(dict(value._asdict()))]
    if isinstance(value, dict):
        return {str(key): _shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if hasattr(value, "outputs") and not isinstance(value, tf.Operation):
        return [type(value).__name__, _shown(value.outputs)]
    if isinstance(value, tf.train.SessionRunHook):
        return "hook"
    if isinstance(value, (tf.train.Scaffold, tf.distribute.cluster_resolver.ClusterResolver)):
        return type(value).__name__
    return getattr(value, "__name__", None) or re.sub(r" at 0x[0-9a-f]+", "", repr(value))


class OpCallable:
    def __call__(self, op):
        return "/cpu:0"

    def __repr__(self):
        return "OpCallable()"


def resolver(*addresses):
    spec = tf.train.ClusterSpec({"worker": list(addresses)} if addresses else {})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, master="grpc://resolved:1")


def parameter_servers():
    """A strategy of that class of TensorFlow 2; a real one would start servers."""
    return object.__new__(tf.compat.v2.distribute.experimental.ParameterServerStrategy)


def changed(config, **attributes):
    """`config` with private attributes set from outside, as scripts in the field do."""
    vars(config).update(attributes)
    return config


def run_configs(model_dir, record):
    _each(record, _PLAIN)


def tpu_configs(model_dir, record):
    _each(record, _TPU)


def configs_in_a_cluster(model_dir, record):
    for tf_config in _IN_A_CLUSTER:
        os.environ["TF_CONFIG"] = json.dumps(tf_config)
        record(tf_config)
        _each(record, ["RunConfig()", "TPURunConfig()"])
    for tf_config, expression in _BOTH:
        os.environ["TF_CONFIG"] = json.dumps(tf_config)
        _each(record, [expression])


def foreign():
    with tf.Graph().as_default():
        return tf.constant(1.0, name="foreign")


def variable():
    return tf.get_variable("variable", [])


def metric_fn(labels, scores):
    return {"accuracy": tf.metrics.accuracy(labels, scores)}


def summing(values):
    return [tf.reduce_sum(values, name="summed")]


def estimator_specs(model_dir, record):
    _each(
        record,
        [
            "Spec('train', loss=one, train_op=variable())",
            "Spec('train', loss=one, train_op=[step])",
            "Spec('train', loss=variable(), train_op=step)",
            "Spec('eval', loss=tf.placeholder(tf.float32, [2, None]))",
            "Spec('eval', pair, one)",
            "Spec('eval', loss=one, predictions={'a': foreign()})",
            "Spec(None, pair, pair[:1], step)",
            "Spec('infer', {'a': pair})",
            "Spec('eval', loss=one, export_outputs={'b': pair})",
            "Spec('eval', loss=one, eval_metric_ops={'m': tf.metrics.mean(pair)})",
            "Spec('eval', loss=one, eval_metric_ops={'m': [one, step]})",
            "Spec('eval', loss=one, eval_metric_ops={'m': (foreign(), step)})",
            "Spec('eval', loss=one, eval_metric_ops={'m': tf.keras.metrics.Mean('mine')})",
            "Spec('eval', loss=one)._replace(loss=pair[0])",
            "Spec('eval', loss=one)._replace(loss=pair)",
        ],
    )


def tpu_estimator_specs(model_dir, record):
    _each(
        record,
        [
            "TPUSpec('train', train_op=step, training_hooks=['hook'])",
            "TPUSpec('eval', loss=pair[:1])",
            "TPUSpec('infer', {'a': pair})",
            "TPUSpec('eval', loss=one, host_call=(summing, [pair, pair]))",
            "TPUSpec('eval', loss=one, host_call=(lambda *values: values, [pair, pair]))",
            "TPUSpec('eval', loss=one, host_call=())",
            "TPUSpec('eval', loss=one, host_call=(partial(metric_fn, pair), [pair, pair]))",
            "TPUSpec('eval', loss=one, eval_metrics=(metric_fn, {'labels': pair}))"
            ".as_estimator_spec()",
            "TPUSpec('eval', loss=one, scaffold_fn=lambda: 'scaffold').as_estimator_spec()",
            "TPUSpec('infer', pair).as_estimator_spec()",
            "TPUSpec('eval', loss=one)._replace(mode='infer')",
            "WarmStartSettings('')",
            "WarmStartSettings('/ckpt', None, None, {'a': 'b'})",
            "tf.estimator.Estimator(metric_fn, warm_start_from=5)",
        ],
    )


_CLUSTER = {"chief": ["c:1"], "ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}
_OF_A_MASTER = {"master": ["m:1"], "worker": ["w:1"], "ps": ["p:1"]}


def _task(kind, index, cluster=_CLUSTER, **more):
    """TF_CONFIG of one task of `cluster`."""
    return {"cluster": cluster, "task": {"type": kind, "index": index}, **more}


_PLAIN = [
    "RunConfig('/m', 7, 10, 20)",
    "RunConfig(model_dir=Path('/m/n'))",
    "RunConfig(save_checkpoints_steps=5)",
    "RunConfig(save_checkpoints_secs=5)",
    "RunConfig(save_checkpoints_steps=None)",
    "RunConfig(save_checkpoints_steps=None, save_checkpoints_secs=None)",
    "RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=None)",
    "RunConfig(save_checkpoints_steps='5')",
    "RunConfig(save_summary_steps=None)",
    "RunConfig(session_config=tf.ConfigProto(log_device_placement=True))",
    "RunConfig(keep_checkpoint_max=None)",
    "RunConfig(keep_checkpoint_every_n_hours=0.5)",
    "RunConfig(log_step_count_steps=None)",
    "RunConfig(device_fn=lambda op: '/cpu:0')",
    "RunConfig(device_fn=lambda node: '/cpu:0')",
    "RunConfig(device_fn='/cpu:0')",
    "RunConfig(device_fn=OpCallable())",
    "RunConfig(device_fn=partial(lambda op, where: where, where='/cpu:0'))",
    "RunConfig(protocol='grpc+verbs')",
    "RunConfig(experimental_max_worker_delay_secs=1.5)",
    "RunConfig(experimental_max_worker_delay_secs=3)",
    "RunConfig(session_creation_timeout_secs=0)",
    "RunConfig(checkpoint_save_graph_def=False)",
    "RunConfig(train_distribute=parameter_servers())",
    "RunConfig(eval_distribute=parameter_servers())",
    "RunConfig().replace(save_checkpoints_steps=5)",
    "RunConfig(save_checkpoints_steps=5).replace(save_checkpoints_secs=6)",
    "RunConfig(save_checkpoints_steps=5).replace(save_checkpoints_secs=None)",
    "RunConfig().replace(save_checkpoints_steps=5, save_checkpoints_secs=6)",
    "RunConfig().replace(save_checkpoints_steps=None, save_checkpoints_secs=None)",
    "RunConfig().replace(model_dir='')",
    "RunConfig().replace(model_dir='/n', tf_random_seed=3, keep_checkpoint_max=0)",
    "RunConfig().replace(master='grpc://x')",
    "RunConfig().replace(train_distribute=tf.distribute.OneDeviceStrategy('/cpu:0'))",
    "changed(RunConfig(), _model_dir='/p', _save_checkpoints_steps=9)",
]
_TPU = [
    "InputPipelineConfig.SLICED",
    "TPUConfig(100, 8, 2, 3)",
    "TPUConfig(iterations_per_loop='1h')",
    "TPUConfig(iterations_per_loop='0s')",
    "TPUConfig(iterations_per_loop=0)",
    "TPUConfig(iterations_per_loop=2.0)",
    "TPUConfig(iterations_per_loop=True)",
    "TPUConfig(num_shards='8')",
    "TPUConfig(per_host_input_for_training=False)",
    "TPUConfig(per_host_input_for_training=InputPipelineConfig.BROADCAST)",
    "TPUConfig(initial_infeed_sleep_secs=-1)",
    "TPUConfig(input_partition_dims=[])",
    "TPUConfig(input_partition_dims=[[1, 2]], per_host_input_for_training=3)",
    "TPUConfig(input_partition_dims=[[1, 2]], per_host_input_for_training=3, "
    "num_cores_per_replica=2)",
    "TPUConfig(eval_training_input_configuration=3)",
    "TPUConfig(eval_training_input_configuration=InputPipelineConfig.SLICED)",
    "TPUConfig()._replace(iterations_per_loop=50)",
    "TPUConfig()._replace(num_cores_per_replica=3)",
    "TPURunConfig(TPUConfig(10), 'grpc://eval', 'grpc://train')",
    "TPURunConfig(master='grpc://train')",
    "TPURunConfig(master='', evaluation_master='')",
    "TPURunConfig(master='x', cluster=resolver('w:1'))",
    "TPURunConfig(cluster=resolver('w:1', 'w:2'))",
    "TPURunConfig(cluster=resolver())",
    "TPURunConfig(cluster='')",
    "TPURunConfig(cluster='', master='x')",
    "TPURunConfig(cluster=resolver('w:1'), session_config=tf.ConfigProto())",
    "TPURunConfig(cluster=resolver('w:1'), session_config=tf.ConfigProto("
    "cluster_def=tf.train.ClusterSpec({'w': ['a:1']}).as_cluster_def()))",
    "TPURunConfig(save_checkpoints_steps=3, model_dir='/t')",
    "TPURunConfig(save_summary_steps=-3)",
    "TPURunConfig().replace(tpu_config=TPUConfig(7), model_dir='/u')",
    "TPURunConfig(TPUConfig(7)).replace(save_checkpoints_steps=7)",
    "TPURunConfig().replace(master='x')",
    "TPURunConfig().replace(cluster=None)",
]
_IN_A_CLUSTER = [
    _task("chief", 0),
    _task("worker", 2),
    _task("ps", 1),
    _task("evaluator", 0, eval_session_master="grpc://e"),
    _task("worker", 3),
    _task("worker", -1),
    _task("trainer", 0),
    _task("chief", 0, {"chief": ["c:1", "c:2"]}),
    _task("chief", 0, {"chief": ["c:1"]}),
    _task("worker", 0, {"worker": ["w:1", "w:2"]}),
    _task("master", 0, _OF_A_MASTER),
    _task("worker", 0, _OF_A_MASTER, session_master="grpc://s"),
    _task("evaluator", 0, _OF_A_MASTER),
    _task("master", 0, {"master": ["m:1"], "chief": ["c:1"]}),
    {"cluster": _CLUSTER},
    {"cluster": _CLUSTER, "task": {"type": "worker"}},
    {"task": {"type": "ps", "index": 0}},
    {"task": {"type": "worker", "index": 1}},
    {"session_master": "grpc://s", "eval_session_master": "grpc://e"},
    {"service": {"tpu_worker_job_name": "tpu_job"}},
    {"model_dir": "/from/cluster"},
    {"model_dir": ""},
]
_BOTH = [
    ({"model_dir": "/a"}, "RunConfig(model_dir='/b')"),
    ({"model_dir": "/a"}, "RunConfig(model_dir='/a')"),
    (_task("worker", 1), "RunConfig(session_config=tf.ConfigProto())"),
    (_task("evaluator", 0), "TPURunConfig(master='grpc://train')"),
]
