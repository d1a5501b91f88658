import json
import os

import tensorflow.compat.v1 as tf
from scenarios import models

_FIELDS = [
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "eval_distribute",
    "protocol",
    "device_fn",
    "task_type",
    "task_id",
    "global_id_in_cluster",
    "master",
    "num_ps_replicas",
    "num_worker_replicas",
    "is_chief",
    "evaluation_master",
    "service",
    "session_creation_timeout_secs",
    "experimental_max_worker_delay_secs",
]


def _fields(config):
    return {name: getattr(config, name) for name in _FIELDS}


def defaults(model_dir, record):
    return _fields(tf.estimator.RunConfig())


def defaults_for_tpu(model_dir, record):
    config = tf.estimator.tpu.RunConfig()
    record(config.tpu_config._asdict())
    record(type(config.tpu_config).__name__, config.cluster)
    return _fields(config)


def tpu_config_arguments(model_dir, record):
    config = tf.estimator.tpu.TPUConfig(
        iterations_per_loop=5, num_shards=2, per_host_input_for_training=3, tpu_job_name="job"
    )
    record(list(config._fields))
    return config._asdict()


def tpu_config_refuses(model_dir, record):
    TPUConfig = tf.estimator.tpu.TPUConfig
    for arguments in (
        {"num_cores_per_replica": 3},
        {"num_shards": 0},
        {"input_partition_dims": [[1, 2]]},
        {"initial_infeed_sleep_secs": 0},
        {"num_cores_per_replica": 2, "input_partition_dims": [[1], [1], [1]]},
        {"per_host_input_for_training": 7},
    ):
        try:
            TPUConfig(**arguments)
            record(arguments, "accepted")
        except Exception as error:
            record(arguments, error)


def config_refuses(model_dir, record):
    for arguments in (
        {"save_checkpoints_steps": 1, "save_checkpoints_secs": 1},
        {"save_checkpoints_steps": -1},
        {"save_checkpoints_secs": -1},
        {"save_summary_steps": -1},
        {"keep_checkpoint_max": -1},
        {"keep_checkpoint_every_n_hours": 0},
        {"log_step_count_steps": 0},
        {"tf_random_seed": 1.5},
        {"model_dir": ""},
        {"session_config": {}},
        {"device_fn": 3},
        {"protocol": "udp"},
        {"unknown": 3},
    ):
        models.attempt(record, tf.estimator.RunConfig, **arguments)


def replace(model_dir, record):
    config = tf.estimator.RunConfig(save_summary_steps=3, save_checkpoints_steps=7)
    changed = config.replace(model_dir="elsewhere", save_checkpoints_secs=3)
    record(_fields(config))
    record(_fields(changed))
    try:
        config.replace(task_id=3)
    except ValueError as error:
        record(error)


def fields_are_read_only(model_dir, record):
    config = tf.estimator.RunConfig()
    try:
        config.save_summary_steps = 5
    except AttributeError as error:
        record(type(error).__name__)


def _with_cluster(task, index, **cluster):
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": task, "index": index}, "session_master": "s"}
    )
    return tf.estimator.RunConfig()


def cluster_chief(model_dir, record):
    cluster = {"chief": ["h0:1"], "worker": ["h1:1"], "ps": ["h2:1"]}
    for task in ("chief", "worker", "ps"):
        record(task, _fields(_with_cluster(task, 0, **cluster)))


def cluster_master(model_dir, record):
    record(_fields(_with_cluster("master", 0, master=["h0:1"], worker=["h1:1"])))


def cluster_evaluator(model_dir, record):
    record(_fields(_with_cluster("evaluator", 0, chief=["h0:1"], worker=["h1:1"])))


def cluster_that_is_wrong(model_dir, record):
    for task, index, cluster in (
        ("worker", 0, {"worker": ["h:1"], "ps": ["h:2"]}),
        ("worker", 3, {"chief": ["h:1"], "worker": ["h:2"]}),
        ("unknown", 0, {"chief": ["h:1"]}),
        ("chief", 0, {"chief": ["h:1", "h:2"]}),
        ("chief", -1, {"chief": ["h:1"]}),
    ):
        models.attempt(record, _with_cluster, task, index, **cluster)


def tf_config_without_a_cluster(model_dir, record):
    for value in ("{}", '{"model_dir": "from_environment"}', '{"task": {"type": "worker"}}'):
        os.environ["TF_CONFIG"] = value
        try:
            record(value, _fields(tf.estimator.RunConfig()))
        except Exception as error:
            record(value, error)


def model_dir_of_config_and_argument(model_dir, record):
    config = tf.estimator.RunConfig(model_dir=model_dir)
    record(tf.estimator.Estimator(models.model_fn, config=config).model_dir)
    record(tf.estimator.Estimator(models.model_fn, model_dir, config).model_dir)
    tf.estimator.Estimator(models.model_fn, "other", config)


def no_model_dir(model_dir, record):
    return os.path.isdir(tf.estimator.Estimator(models.model_fn).model_dir)


def model_dir_as_a_path(model_dir, record):
    import pathlib

    estimator = tf.estimator.Estimator(models.model_fn, pathlib.Path(model_dir))
    estimator.train(models.batches(), steps=1)
    return type(estimator.model_dir).__name__


def config_is_a_dict(model_dir, record):
    tf.estimator.Estimator(models.model_fn, model_dir, config={"a": 1})


def config_is_copied(model_dir, record):
    estimator = models.estimator(model_dir, params={"a": [1]})
    estimator.params["a"].append(2)
    record(estimator.params, estimator.config is estimator.config)
    return estimator.config.model_dir


def model_fn_is_none(model_dir, record):
    tf.estimator.Estimator(None, model_dir)


def model_fn_without_features(model_dir, record):
    for fn in (lambda labels: 0, lambda features, other: 0, lambda features, labels, mode, x=1: 0):
        models.attempt(record, tf.estimator.Estimator, fn, model_dir)


def params_without_a_place(model_dir, record):
    models.attempt(record, models.estimator, model_dir, params={"a": 1})


def a_subclass_that_overrides(model_dir, record):
    class Sub(tf.estimator.Estimator):
        def train(self, *args, **kwargs):
            return super().train(*args, **kwargs)

    Sub(models.model_fn, model_dir)


def subclasses_that_override_other_members(model_dir, record):
    class Internal(tf.estimator.Estimator):
        def _train_model(self, *args):
            return None

    class Latest(tf.estimator.Estimator):
        def latest_checkpoint(self):
            return "mine"

    class OnItsOwn(tf.estimator.Estimator):
        def _assert_members_are_not_overridden(self):
            pass

        def eval_dir(self, name=None):
            return "mine"

    for kind in (Internal, Latest, OnItsOwn):
        models.attempt(record, kind, models.model_fn, model_dir)
    record(OnItsOwn(models.model_fn, model_dir).eval_dir())


def a_subclass_that_adds(model_dir, record):
    """They may add methods, and call the constructor with a model_fn of their own."""

    class Sub(tf.estimator.Estimator):
        def __init__(self, model_dir):
            super().__init__(models.model_fn, model_dir)

        def train_once(self):
            return self.train(models.batches(), steps=1)

    return Sub(model_dir).train_once().get_variable_value("global_step")


def the_public_model_fn(model_dir, record):
    def model_fn(features, labels, mode, params):
        record(params)
        return models.model_fn(features, labels, mode)

    estimator = models.estimator(model_dir, model_fn, {"a": 1})
    with tf.Graph().as_default():
        tf.train.create_global_step()
        features, labels = tf.data.make_one_shot_iterator(models.batches()()).get_next()
        spec = estimator.model_fn(features, labels, "train", estimator.config)
        record(type(spec).__name__, spec.mode, spec.loss.dtype.name, list(spec._fields))


def session_config(model_dir, record):
    record(models.estimator(model_dir).config.session_config is not None)
    own = tf.ConfigProto(intra_op_parallelism_threads=1)
    estimator = models.estimator(model_dir, session_config=own)
    record(estimator.config.session_config.intra_op_parallelism_threads)
    estimator.train(models.batches(), steps=1)


def device_fn(model_dir, record):
    seen = []

    def place(op):
        seen.append(op.type)
        return "/cpu:0"

    models.estimator(model_dir, device_fn=place).train(models.batches(), steps=1)
    return len(seen) > 0
