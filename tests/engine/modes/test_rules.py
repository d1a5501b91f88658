import dataclasses

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import finite_input_fn, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.modes import preparation, runtimes
from tpu_estimator_compat.engine.modes.rules import Rules
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys


def told(told_to):
    def input_fn(params):
        told_to["input_fn"] = params
        return tf.data.Dataset.from_tensors(tf.zeros([params.get("batch_size", 3), 2]))

    def model_fn(features, mode, params):
        told_to["model_fn"] = params
        loss = tf.tpu.cross_replica_sum(tf.reduce_sum(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=tf.no_op())

    return input_fn, model_fn


def new_store(input_mode):
    return runtimes.new_store(input_mode.topology)


def tpu_rules(model_fn):
    config = tpu.RunConfig()
    sizes = {ModeKeys.TRAIN: 8, ModeKeys.EVAL: None, ModeKeys.PREDICT: None}
    return Rules(model_fn, {"own": 1}, config, config.tpu_config, True, True, sizes, None)


def test_other_values_are_other_rules(strategy):
    found = {}
    input_fn, model_fn = told(found)
    own = tpu_rules(model_fn)
    other = dataclasses.replace(own, batch_sizes={**own.batch_sizes, ModeKeys.TRAIN: 16})
    for rules, size in ((own, 8), (other, 16), (own, 8)):
        input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(2), tpu_semantics=True))
        preparation.prepare(rules, input_fn, input_mode, new_store(input_mode))
        assert found["input_fn"].keys() == {"own", "batch_size", "context"}
        assert found["model_fn"].keys() == {"own", "batch_size", "use_tpu", "context"}
        sizes = found["input_fn"]["batch_size"], found["model_fn"]["batch_size"]
        assert sizes == (size, size // 2)
    assert own.params == {"own": 1}


def test_plain_rules_add_nothing(strategy):
    found = {}
    input_fn, model_fn = told(found)
    rules = Rules(model_fn, {"own": 1}, tpu.RunConfig())
    input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(1), False))
    with pytest.raises(ValueError, match="Got a TPUEstimatorSpec"):
        preparation.prepare(rules, input_fn, input_mode, new_store(input_mode))
    assert found == {"input_fn": {"own": 1}, "model_fn": {"own": 1}}
    assert not rules.on_tpu(ModeKeys.TRAIN)


def test_off_tpu_functions_get_whole_batches(strategy):
    found = {}
    input_fn, model_fn = told(found)
    rules = tpu_rules(model_fn)
    input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(1), False))
    preparation.prepare(rules, input_fn, input_mode, new_store(input_mode))
    assert found["input_fn"] == {"own": 1, "batch_size": 8}
    assert found["model_fn"] == {"own": 1, "batch_size": 8, "use_tpu": False}
    assert rules.loop(Topology(strategy(1), False)) is None
    assert rules.loop(Topology(strategy(1), True)).value == 2


def test_plain_specs_in_evaluation_on_tpu(tmp_path, strategy):
    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        return spec.as_estimator_spec()

    estimator = make_estimator(
        tmp_path, model_fn, use_tpu=True, train_distribute=strategy(1), eval_distribute=strategy(1)
    )
    with pytest.raises(RuntimeError, match="used by TPU evaluation must have type"):
        estimator.evaluate(train_input_fn, steps=1)
    with pytest.raises(RuntimeError, match="used by TPU prediction must have type"):
        next(estimator.predict(finite_input_fn(16)))


@pytest.mark.parametrize(
    ("sizes", "call", "message"),
    [
        ({"train_batch_size": 9}, "train", "train batch size 9 must be divisible by number of rep"),
        ({"eval_batch_size": 9}, "evaluate", "eval batch size 9 must be divisible by number of"),
        ({"eval_batch_size": None}, "evaluate", "eval_batch_size in TPUEstimator constructor"),
        ({"predict_batch_size": 9}, "predict", "predict batch size 9 must be divisible by number"),
        ({"predict_batch_size": None}, "predict", "predict_batch_size in TPUEstimator constructo"),
    ],
)
def test_batch_sizes_and_replicas(tmp_path, sizes, call, message):
    estimator = make_estimator(tmp_path, use_tpu=True, **sizes)
    calls = {
        "train": lambda: estimator.train(train_input_fn, steps=1),
        "evaluate": lambda: estimator.evaluate(train_input_fn, steps=1),
        "predict": lambda: next(estimator.predict(finite_input_fn(8))),
    }
    with pytest.raises(ValueError, match=message):
        calls[call]()


def test_num_shards_that_the_strategy_does_not_have(tmp_path, strategy):
    estimator = make_estimator(
        tmp_path, use_tpu=True, tpu_config=tpu.TPUConfig(num_shards=8), train_distribute=strategy(4)
    )
    with pytest.raises(ValueError, match=r"num_replicas should be \(4\), got \(8\)"):
        estimator.train(train_input_fn, steps=1)


@pytest.mark.parametrize(("shards", "replicas"), [(2, 2), (8, 4)])
def test_num_shards_of_a_tpu_that_is_not_there(tmp_path, caplog, shards, replicas):
    sizes = []

    def input_fn(params):
        sizes.append(params["context"].num_replicas)
        return train_input_fn(params)

    estimator = make_estimator(tmp_path, use_tpu=True, tpu_config=tpu.TPUConfig(num_shards=shards))
    estimator.train(input_fn, steps=1)
    assert set(sizes) == {replicas}
    told = f"num_shards is 8, but there is no TPU, and this machine has {replicas} replica(s)"
    assert (told in caplog.text) == (shards > replicas)


def test_dynamic_shapes_on_tpu(tmp_path, strategy):
    estimator = make_estimator(tmp_path, use_tpu=True, train_distribute=strategy(1))
    with pytest.raises(ValueError, match="features to the model returned by input_fn must have st"):
        estimator.train(finite_input_fn(64), steps=1)


def tensors_input_fn(params):
    x = tf.random.normal([params["batch_size"], 4])
    return x, tf.zeros([params["batch_size"]], tf.int32)


def test_tensors_where_tpu_execution_wants_a_dataset(tmp_path):
    per_host_v2 = tpu.TPUConfig(per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2)
    est = make_estimator(tmp_path, use_tpu=True, tpu_config=per_host_v2)
    with pytest.raises(TypeError, match="`input_fn` must return a `Dataset` for the PER_HOST_V2"):
        est.train(tensors_input_fn, max_steps=1)
    est = make_estimator(tmp_path, use_tpu=True)
    with pytest.raises(TypeError, match="For mode PREDICT, `input_fn` must return `Dataset`"):
        next(est.predict(tensors_input_fn))


def test_a_batch_that_is_not_the_one_asked_for_is_named(tmp_path, caplog):
    est = make_estimator(tmp_path, use_tpu=True, tpu_config=tpu.TPUConfig(num_shards=1))
    est.train(lambda params: train_input_fn({"batch_size": 8}), max_steps=1)
    told = "input_fn was told params['batch_size'] = 16, but gives batches of [8]"
    assert caplog.text.count(told) == 1
    caplog.clear()
    est.train(train_input_fn, max_steps=2)
    assert "was told" not in caplog.text
