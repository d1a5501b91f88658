import time

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

TRAINING = "tf.contrib.training"


@proves("tf.contrib.training.python.training")
def trains(module, tmp_path):
    with graph():
        tf.train.create_global_step()
        variable = tf.get_variable("v", initializer=2.0)
        train_op = module.create_train_op(variable**2, tf.train.GradientDescentOptimizer(0.1))
        final = module.train(train_op, str(tmp_path), hooks=[tf.train.StopAtStepHook(3)])
    np.testing.assert_allclose(final, (2 * 0.8**2) ** 2, rtol=1e-5)


@proves(f"{TRAINING}.python.training.evaluation")
def waits_for_checkpoints(module, tmp_path):
    for path in (str(tmp_path / "model-1"), str(tmp_path / "model-2")):
        with graph(), tf.Session() as session:
            tf.get_variable("v", initializer=2.0)
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, path)
    assert module.wait_for_new_checkpoint(str(tmp_path)) == path
    assert list(module.checkpoints_iterator(str(tmp_path), timeout=0)) == [path]
    start = time.monotonic()
    assert module.wait_for_new_checkpoint(str(tmp_path), path, 0.1, timeout=0.2) is None
    assert time.monotonic() - start < 5


@proves(f"{TRAINING}.python.training.hparam", TRAINING)
def has_hyperparameters(module):
    hparams = module.HParams(rate=0.1, units=[1, 2], name="a", on=True, nothing=None)
    assert hparams.parse("rate=2,units=[3,4,5],name=b,on=false") is hparams
    assert hparams.values() == {
        "rate": 2.0,
        "units": [3, 4, 5],
        "name": "b",
        "on": False,
        "nothing": None,
    }
    assert module.HParams(x=1).to_json() == '{"x": 1}'
    assert module.HParams(x=1).parse_json('{"x": 2}').x == 2
    assert hparams.override_from_dict({"rate": 3}).rate == 3.0
    hparams.add_hparam("more", 5)
    assert "more" in hparams
    assert hparams.get("more", 0) == 5
    assert hparams.get("less", 0) == 0
    hparams.del_hparam("more")
    assert "more" not in hparams
    assert module.parse_values("a[1]=3,b=x", {"a": int}, ignore_unknown=True) == {"a": {1: 3}}
