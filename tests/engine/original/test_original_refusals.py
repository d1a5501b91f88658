"""What sessions cannot have: each error names it, and the runtime that can."""

import json

import keras
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn


def train(estimator):
    estimator.train(train_input_fn, steps=1)


def evaluate(estimator):
    estimator.evaluate(train_input_fn, steps=1)


def predict(estimator):
    next(estimator.predict(train_input_fn))


CALLS = {"train": train, "evaluate": evaluate, "predict": predict}
STRATEGY = tf.distribute.OneDeviceStrategy("/cpu:0")


@pytest.mark.parametrize(
    ("settings", "refused", "by"),
    [
        ({"use_tpu": True}, "use_tpu=True", CALLS),
        ({"train_distribute": STRATEGY}, "train_distribute", ["train"]),
        ({"eval_distribute": STRATEGY}, "eval_distribute", ["evaluate"]),
        ({"jit_compile": True}, "jit_compile=True", ["train"]),
        ({"save_input_state": True}, "save_input_state=True", ["train"]),
    ],
)
def test_settings(tmp_path, settings, refused, by):
    estimator = make_estimator(tmp_path, runtime="session", **settings)
    for call in by:
        with pytest.raises(NotImplementedError) as error:
            CALLS[call](estimator)
        assert str(error.value) == (
            "RunConfig(runtime=\"session\"): the original's loops run in TensorFlow's sessions, "
            f'which have no {refused}. Drop it, or set RunConfig(runtime="tensorflow").'
        )


def test_a_strategy_is_no_hindrance_to_other_calls(tmp_path):
    """As in the original, which trained in one device's session with an `eval_distribute`."""
    estimator = make_estimator(tmp_path, runtime="session", eval_distribute=STRATEGY)
    train(estimator)
    predict(estimator)


def test_keras_models(tmp_path):
    with pytest.raises(NotImplementedError, match=r"no keras_model\(\).*runtime=\"tensorflow\""):
        make_estimator(tmp_path, runtime="session").keras_model()


def test_keras_callbacks(tmp_path):
    hooks = [keras.callbacks.TerminateOnNaN()]
    with pytest.raises(NotImplementedError, match=r'TerminateOnNaN.*runtime="tensorflow"'):
        make_estimator(tmp_path, runtime="session").train(train_input_fn, hooks=hooks, steps=1)


@pytest.fixture
def cluster(monkeypatch):
    def of(**more):
        jobs = {"chief": ["localhost:1"], "worker": ["localhost:2"], **more}
        config = {"cluster": jobs, "task": {"type": "chief", "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    return of


def test_workers_without_parameter_servers(tmp_path, cluster):
    cluster()
    estimator = make_estimator(tmp_path, runtime="session")
    with pytest.raises(NotImplementedError, match=r"workers share.*`ps`.*tensorflow"):
        train(estimator)


def test_parameter_servers_with_tpus(tmp_path, cluster):
    cluster(ps=["localhost:3"])
    estimator = make_estimator(tmp_path, use_tpu=True)
    with pytest.raises(NotImplementedError) as error:
        train(estimator)
    assert str(error.value) == (
        "TF_CONFIG names 1 parameter server(s): the original's loops run in TensorFlow's sessions, "
        "which have no use_tpu=True. Drop it, or take the job `ps` out of the cluster."
    )


class Created(tf.train.SessionRunHook):
    session = None

    def after_create_session(self, session, coord):
        self.session = session


@pytest.mark.parametrize("runtime", ["tensorflow", "session"])
def test_hooks_get_a_session_of_tensorflow(tmp_path, runtime):
    hook = Created()
    make_estimator(tmp_path, runtime=runtime).train(train_input_fn, hooks=[hook], steps=1)
    assert (type(hook.session) is tf.Session) == (runtime == "session")


def test_idle_fields_are_no_more_idle(tmp_path, caplog):
    config = tf.ConfigProto(log_device_placement=True)
    settings = {"session_config": config, "device_fn": lambda op: "/cpu:0"}
    make_estimator(tmp_path, runtime="session", **settings)
    assert not [line for line in caplog.messages if "no effect" in line or "not called" in line]
    train(make_estimator(tmp_path, runtime="tensorflow", **settings))
    assert [line for line in caplog.messages if "device_fn" in line and "no effect" in line]
