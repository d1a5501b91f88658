import pytest

import tpu_estimator_compat.v1 as tf

from .small_net import STEPS, input_fn, make


@pytest.mark.parametrize("replicas", [1, 2])
def test_summaries_in_host_call(replicas, tmp_path, strategy):
    optimizers = {"net": lambda: tf.contrib.opt.AdamWOptimizer(0.01, 0.05)}
    make(tmp_path, optimizers, strategy(replicas), True).train(input_fn, steps=STEPS)
    [path] = (tmp_path / "host").glob("*tfevents*")
    steps = [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value]
    assert len(steps) == STEPS
    assert sorted(set(steps)) == steps
