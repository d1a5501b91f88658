"""What `PlainRules` and `TPURules` tell functions, without an estimator around them."""

import dataclasses

import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.estimator.plain_rules import PlainRules
from tpu_estimator_compat.estimator.tpu_rules import TPURules
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import Topology


def told(told_to):
    """An input_fn and a model_fn that note down the params that they are given."""

    def input_fn(params):
        told_to["input_fn"] = params
        return tf.data.Dataset.from_tensors(tf.zeros([params.get("batch_size", 3), 2]))

    def model_fn(features, mode, params):
        told_to["model_fn"] = params
        return tpu.TPUEstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=tf.no_op())

    return input_fn, model_fn


def tpu_rules(model_fn):
    config = tpu.RunConfig()
    sizes = {ModeKeys.TRAIN: 8, ModeKeys.EVAL: None, ModeKeys.PREDICT: None}
    return TPURules(model_fn, {"own": 1}, config, config.tpu_config, True, True, sizes, None)


def test_other_values_are_other_rules(strategy):
    found = {}
    input_fn, model_fn = told(found)
    own = tpu_rules(model_fn)
    other = dataclasses.replace(own, batch_sizes={**own.batch_sizes, ModeKeys.TRAIN: 16})
    for rules, size in ((own, 8), (other, 16), (own, 8)):
        input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(2), tpu_semantics=True))
        rules.prepare(input_fn, input_mode)
        assert found["input_fn"].keys() == {"own", "batch_size", "context"}
        assert found["model_fn"].keys() == {"own", "batch_size", "use_tpu", "context"}
        sizes = found["input_fn"]["batch_size"], found["model_fn"]["batch_size"]
        assert sizes == (size, size // 2)
    assert own.params == {"own": 1}


def test_off_tpu_functions_get_whole_batches(strategy):
    found = {}
    input_fn, model_fn = told(found)
    rules = tpu_rules(model_fn)
    rules.prepare(input_fn, rules.input_mode(ModeKeys.TRAIN, Topology(strategy(1), False)))
    assert found["input_fn"] == {"own": 1, "batch_size": 8}
    assert found["model_fn"] == {"own": 1, "batch_size": 8, "use_tpu": False}
    assert rules.loop(Topology(strategy(1), False)) is None
    assert rules.loop(Topology(strategy(1), True)).value == 2


def test_plain_rules_add_nothing(strategy):
    found = {}
    input_fn, model_fn = told(found)
    rules = PlainRules(model_fn, {"own": 1}, tpu.RunConfig())
    input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(1), False))
    with pytest.raises(ValueError, match="Got a TPUEstimatorSpec"):
        rules.prepare(input_fn, input_mode)
    assert found == {"input_fn": {"own": 1}, "model_fn": {"own": 1}}
    assert not rules.on_tpu(ModeKeys.TRAIN)
