import collections
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import answers, below, graph, proves
from support.proofs.names.estimator import input_fn, model_fn, trained
from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.old_names.canned import of_v2

ESTIMATOR = "tensorflow_estimator.python.estimator"
TPU = f"{ESTIMATOR}.tpu"


@proves(f"{ESTIMATOR}.estimator._load_global_step_from_checkpoint_dir")
def tells_the_step(load, tmp_path):
    assert load(str(tmp_path / "nowhere")) == 0
    assert load(None) == 0
    trained(estimators.Estimator, tmp_path)
    assert load(str(tmp_path)) == 3


@proves(f"{ESTIMATOR}.estimator._check_checkpoint_available")
def misses_checkpoints(check, tmp_path):
    with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
        check(str(tmp_path))


@proves(*below(ESTIMATOR, "estimator._check_hooks_type estimator._check_listeners_type"))
def checks_types(check):
    assert check(None) == []
    with pytest.raises(TypeError, match=r"must be a (list of )?\w+, given: 7"):
        check([7])


@proves("tensorflow_estimator.python.estimator.model_fn.verify_model_fn_args")
def checks_arguments(verify):
    verify(model_fn, None)
    with pytest.raises(ValueError, match="must include features argument"):
        verify(lambda labels: labels, None)


@proves(f"{ESTIMATOR}.estimator._write_dict_to_summary")
def writes(write, tmp_path):
    with graph():
        write(str(tmp_path), {"x": 2.5, "global_step": 3, "nothing": None}, 7)
    tf.summary.FileWriterCache.clear()
    [path] = tmp_path.iterdir()
    events = [e for e in tf.train.summary_iterator(str(path)) if e.summary.value]
    assert [(e.step, [(v.tag, v.simple_value) for v in e.summary.value]) for e in events] == [
        (7, [("x", 2.5)])
    ]


@proves(f"{ESTIMATOR}.estimator._extract_metric_update_ops")
def extracts(extract):
    with graph(), tf.Session() as session:
        mean = tf.metrics.mean(tf.constant([1.0, 3.0]))
        update, values = extract({"mean": mean})
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(values) == {"mean": 2.0}
        assert extract({}) == (None, {})


@proves(f"{ESTIMATOR}.estimator._get_replica_device_setter")
def places(setter):
    config = estimators.RunConfig()
    assert setter(config) is None
    config._num_ps_replicas, config._task_type = 1, "worker"
    config._cluster_spec = tf.train.ClusterSpec({"worker": ["a:1"], "ps": ["b:1"]})
    with graph(), tf.device(setter(config)):
        assert tf.get_variable("v", [], use_resource=False).device == "/job:ps/task:0"
        assert tf.constant(1).device == "/job:worker/task:0"


@proves(f"{ESTIMATOR}.estimator.maybe_overwrite_model_dir_and_session_config")
def completes_configs(complete):
    config = complete(None, "/tmp/x")
    assert config.model_dir == "/tmp/x"
    assert config.session_config is not None


@proves(f"{ESTIMATOR}.util")
def parses_input(util):
    assert util.fn_args(lambda a, b=1: a) == ("a", "b")
    with graph():
        features, labels, hooks = util.parse_input_fn_result(input_fn())
        with tf.train.MonitoredSession(hooks=hooks) as session:
            assert [x.tolist() for x in session.run([features, labels])] == [[1.0], [2.0]]
        assert util.parse_input_fn_result({"x": 1}) == ({"x": 1}, None, [])
        ready = tf.Variable(1.0, use_resource=False)
        hook = util.MultiHostDatasetInitializerHook([ready.initializer])
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            assert session.run(ready) == 1.0
    with pytest.raises(ValueError, match=r"\(features, labels\) as a len 2 tuple"):
        util.parse_iterator_result([1, 2, 3])


@proves(f"{TPU}.util.MultiHostDatasetInitializerHook")
def initializes(hook):
    with graph(), tf.Session() as session:
        ready = tf.Variable(1.0, use_resource=False)
        hook([ready.initializer]).after_create_session(session, None)
        assert session.run(ready) == 1.0


@proves(f"{TPU}.tpu_estimator._add_item_to_params")
def adds(add):
    params = {}
    add(params, "batch_size", 3)
    assert params == {"batch_size": 3}


@proves(f"{TPU}.tpu_estimator.ExamplesPerSecondHook")
def tells_speed(hook, tmp_path):
    with graph():
        step = tf.train.create_global_step()
        increase = step.assign_add(1)
        speed = hook(4, every_n_steps=1, output_dir=str(tmp_path))
        with tf.train.MonitoredSession(hooks=[speed]) as session:
            for _ in range(3):
                session.run(increase)
        tf.summary.FileWriterCache.get(str(tmp_path)).flush()
    [path] = tmp_path.iterdir()
    events = tf.train.summary_iterator(str(path))
    tags = collections.Counter(value.tag for e in events for value in e.summary.value)
    assert tags["examples/sec"] == tags["global_step/sec"] > 0


@proves("tf.python.util.tf_export.estimator_export")
def leaves_what_it_decorates(export):
    @export("estimator.Mine", v1=["estimator.MineV1"])
    class Mine:
        pass

    assert isinstance(Mine(), Mine)


@proves("tensorflow_estimator._api.v2.estimator")
def has_the_api_of_2(module):
    assert issubclass(module.Estimator, estimators.Estimator)
    assert module.DNNClassifier is of_v2.DNNClassifier


SMALL: dict[str, Any] = {
    "tf.python.distribute.estimator_training.should_run_distribute_coordinator": (
        lambda asks: asks(estimators.RunConfig()),
        False,
    ),
    f"{ESTIMATOR}.estimator._canned_estimator_api_gauge": (
        lambda gauge: gauge.get_cell("Classifier").set("DNN"),
        None,
    ),
    f"{ESTIMATOR}.estimator._dict_to_str": (
        lambda shown: shown({"b": np.float32(6.9600205), "a": 1, "bytes": b"x"}),
        "a = 1, b = 6.9600205",
    ),
    f"{ESTIMATOR}.model_fn._VALID_MODEL_FN_ARGS": (
        sorted,
        ["config", "features", "labels", "mode", "params", "self"],
    ),
    f"{TPU}.tpu_estimator._BATCH_SIZE_KEY": (str, "batch_size"),
    f"{TPU}.tpu_estimator._CTX_KEY": (str, "context"),
    f"{TPU}.tpu_estimator._USE_TPU_KEY": (str, "use_tpu"),
    f"{TPU}.tpu_estimator._RESERVED_PARAMS_KEYS": (list, ["batch_size", "context"]),
}

answers(SMALL)
