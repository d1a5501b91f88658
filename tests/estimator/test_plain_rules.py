import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.estimator import preparation
from tpu_estimator_compat.estimator.plain_rules import PlainRules
from tpu_estimator_compat.spec import ModeKeys

from .noting import new_store, told


def test_plain_rules_add_nothing(strategy):
    found = {}
    input_fn, model_fn = told(found)
    rules = PlainRules(model_fn, {"own": 1}, tpu.RunConfig())
    input_mode = rules.input_mode(ModeKeys.TRAIN, Topology(strategy(1), False))
    with pytest.raises(ValueError, match="Got a TPUEstimatorSpec"):
        preparation.prepare(rules, input_fn, input_mode, new_store(input_mode))
    assert found == {"input_fn": {"own": 1}, "model_fn": {"own": 1}}
    assert not rules.on_tpu(ModeKeys.TRAIN)
