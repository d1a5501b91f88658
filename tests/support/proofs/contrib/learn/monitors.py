"""Proofs of `tf.contrib.learn.monitors`."""

import pytest
import tensorflow.compat.v1 as tf

from support.proofs import proves
from support.proofs.names.estimator import input_fn, model_fn
from tpu_estimator_compat import estimator as estimators


@proves("tf.contrib.learn.monitors")
def monitors(module, tmp_path):
    seen = []

    class Watching(module.EveryN):
        def every_n_step_begin(self, step):
            return ["weight/Read/ReadVariableOp:0"]

        def every_n_step_end(self, step, outputs):
            [value] = outputs.values()
            seen.append((step, float(value) > 0))

    estimator = estimators.Estimator(
        model_fn, config=estimators.RunConfig(str(tmp_path), save_checkpoints_steps=2)
    )
    validating = module.ValidationMonitor(input_fn=input_fn, eval_steps=1, every_n_steps=2)
    plain = tf.train.StopAtStepHook(num_steps=5)
    given = [Watching(2, first_n_steps=1), plain, validating]
    hooks = module.replace_monitors_with_hooks(given, estimator)
    assert hooks[0] is plain
    assert isinstance(hooks[1], module.RunHookAdapterForMonitors)
    assert module.replace_monitors_with_hooks(None, estimator) == []
    estimator.train(input_fn, hooks=hooks, steps=9)
    assert estimator.get_variable_value("global_step") == 5
    assert [step for step, _ in seen] == [1, 3, 5]
    assert (tmp_path / "eval").exists()
    with pytest.raises(ValueError, match="Either x or input_fn should be provided"):
        module.ValidationMonitor()
