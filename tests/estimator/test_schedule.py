import json
import subprocess
import sys
import textwrap
import time
import types

import pytest
import tensorflow.compat.v1 as tf
from support import TESTS
from support.legacy_models import finite_input_fn, make_estimator, train_input_fn

from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat.estimator import schedule

from .remembering import Exporter

TrainSpec, EvalSpec = namespace.TrainSpec, namespace.EvalSpec


def test_on_tpu_an_evaluation_needs_steps(tmp_path, strategy):
    estimator = make_estimator(tmp_path, use_tpu=True, train_distribute=strategy(1))
    eval_spec = EvalSpec(train_input_fn, steps=None)
    with pytest.raises(ValueError, match="Evaluate `steps` must be set on TPU"):
        namespace.train_and_evaluate(estimator, TrainSpec(train_input_fn, max_steps=5), eval_spec)


def test_on_tpu_each_checkpoint_is_evaluated_and_exported(tmp_path, strategy):
    exporter = Exporter()
    estimator = make_estimator(
        tmp_path, use_tpu=True, save_checkpoints_steps=10, train_distribute=strategy(2)
    )
    eval_spec = EvalSpec(train_input_fn, steps=2, exporters=exporter, throttle_secs=0)
    metrics, exports = namespace.train_and_evaluate(
        estimator, TrainSpec(train_input_fn, max_steps=25), eval_spec
    )
    assert (metrics["global_step"], exports) == (25, ["export 3"])
    folder = str(tmp_path / "export" / "mine")
    assert [(*paths, result["global_step"], final) for *paths, result, final in exporter.asked] == [
        (folder, str(tmp_path / f"model.ckpt-{s}"), s, s == 25) for s in (10, 20, 25)
    ]


def test_a_checkpoint_that_disappears_is_an_error(tmp_path):
    class Renames(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")

    estimator = make_estimator(tmp_path)
    train_spec = TrainSpec(train_input_fn, max_steps=5, saving_listeners=[Renames()])
    with pytest.raises(RuntimeError, match="There was no new checkpoint after the training"):
        namespace.train_and_evaluate(estimator, train_spec, EvalSpec(train_input_fn, steps=1))


def in_cluster(monkeypatch, task, index=0, **jobs):
    cluster = {job: [f"localhost:{2000 + i}" for i in range(n)] for job, n in jobs.items()}
    config = {"cluster": cluster, "task": {"type": task, "index": index}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


REFUSED = {
    "ps": (("ps", 0, {"chief": 1, "ps": 1}), "1 parameter server"),
    "chief beside a ps": (("chief", 0, {"chief": 1, "ps": 1}), "1 parameter server"),
    "other job": (("reader", 0, {"chief": 1, "reader": 1}), "Task type reader is not supported"),
    "second evaluator": (("evaluator", 1, {"chief": 1}), "there can only be one `evaluator` task"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_roles_without_a_part_are_refused_with_the_reason(tmp_path, monkeypatch, case):
    (task, index, jobs), words = REFUSED[case]
    in_cluster(monkeypatch, task, index, **jobs)
    estimator = make_estimator(tmp_path, runtime="tensorflow")
    specs = TrainSpec(train_input_fn, max_steps=5), EvalSpec(train_input_fn)
    with pytest.raises(ValueError) as raised:
        namespace.train_and_evaluate(estimator, *specs)
    assert words in str(raised.value)
    assert estimator.latest_checkpoint() is None


def test_a_strategy_of_parameter_servers_trains_by_train_and_evaluate_only(tmp_path, monkeypatch):
    """Only that starts the task's server, without which `train` would wait for ever."""
    in_cluster(monkeypatch, "chief", chief=1, ps=1)
    strategy = tf.distribute.experimental.ParameterServerStrategy()
    config = namespace.RunConfig(str(tmp_path), train_distribute=strategy)
    assert config.session_config.device_filters == ["/job:ps", "/job:chief"]
    estimator = make_estimator(tmp_path, train_distribute=strategy)
    with pytest.raises(ValueError, match=r"Please use tf\.estimator\.train_and_evaluate"):
        estimator.train(train_input_fn, steps=1)


def test_a_strategy_of_parameter_servers_alone_is_one_device(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    losses = []
    for strategy in (None, tf.distribute.experimental.ParameterServerStrategy()):
        estimator = make_estimator(tmp_path / str(len(losses)), train_distribute=strategy)
        estimator.train(train_input_fn, steps=5)
        losses.append(estimator.evaluate(train_input_fn, steps=2)["loss"])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("role", ["chief", "master"])
def test_the_chief_trains_and_a_master_evaluates_too(tmp_path, monkeypatch, role):
    in_cluster(monkeypatch, role, **{role: 1})
    exporter = Exporter()
    estimator = make_estimator(tmp_path, save_checkpoints_steps=10)
    returned = namespace.train_and_evaluate(
        estimator,
        TrainSpec(train_input_fn, max_steps=20),
        EvalSpec(train_input_fn, steps=1, exporters=exporter, throttle_secs=0),
    )
    assert returned is None
    assert estimator.latest_checkpoint().endswith("-20")
    assert len(exporter.asked) == (2 if role == "master" else 0)


def evaluate_beside_a_chief(tmp_path, monkeypatch, caplog):
    """What exporters of an evaluator were asked, which ends by itself."""
    in_cluster(monkeypatch, "evaluator", chief=1)
    exporter = Exporter()
    with caplog.at_level("INFO", logger="tensorflow"):
        namespace.train_and_evaluate(
            make_estimator(tmp_path),
            TrainSpec(train_input_fn, max_steps=30),
            EvalSpec(
                finite_input_fn(16),
                steps=None,
                exporters=exporter,
                start_delay_secs=1,
                throttle_secs=0.5,
            ),
        )
    steps = [int(result["global_step"]) for _, _, result, _ in exporter.asked]
    assert [final for *_, final in exporter.asked] == [s == 30 for s in steps]
    assert "Waiting 1.000000 secs before starting eval." in caplog.text
    assert "Estimator is not trained yet." in caplog.text
    assert "Exiting evaluation, global_step=30 >= train max_steps=30" in caplog.text
    return steps


def test_the_evaluator_waits_for_checkpoints_until_the_last(tmp_path, monkeypatch, caplog):
    """While it waits, a chief trains: here in the same process, whenever it sleeps."""
    in_cluster(monkeypatch, "chief", chief=1)
    chief = make_estimator(tmp_path)
    chief_does = iter([None, None, 10, None, 20, 30, None])
    now, slept = [1_700_000_000.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds
        if steps := next(chief_does):
            chief.train(train_input_fn, max_steps=steps)

    clock = types.SimpleNamespace(time=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(schedule._training, "time", clock)
    assert evaluate_beside_a_chief(tmp_path, monkeypatch, caplog) == [10, 20, 30]
    assert slept == [1, *[0.5] * 6]
    assert caplog.text.count("Estimator is not trained yet.") == 1
    assert "No new checkpoint ready for evaluation." in caplog.text


@pytest.mark.slow
def test_an_evaluator_beside_a_chief(tmp_path, monkeypatch, caplog):
    """The chief is a process of its own, which starts later and trains meanwhile."""
    script = f"""
    import sys, time
    sys.path.insert(0, {str(TESTS)!r})
    from support.legacy_models import make_estimator, train_input_fn
    from tpu_estimator_compat import estimator
    import tensorflow.compat.v1 as tf
    class Slow(tf.train.CheckpointSaverListener):
        def after_save(self, session, step):
            time.sleep(2)
    estimator.train_and_evaluate(
        make_estimator({str(tmp_path)!r}, save_checkpoints_steps=10),
        estimator.TrainSpec(train_input_fn, max_steps=30, saving_listeners=[Slow()]),
        estimator.EvalSpec(train_input_fn, steps=1),
    )
    """
    in_cluster(monkeypatch, "chief", chief=1)
    chief = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    started = time.time()
    steps = evaluate_beside_a_chief(tmp_path, monkeypatch, caplog)
    assert time.time() - started > 1
    assert chief.wait(timeout=60) == 0
    assert steps == sorted(set(steps))
    assert steps[-1] == 30
    assert len(steps) >= 2


def test_checkpoints_iterator_sees_what_training_writes(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=10)
    seen = []

    class Looks(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            seen.append(next(iterator))

    iterator = tf.train.checkpoints_iterator(str(tmp_path), timeout=1)
    estimator.train(train_input_fn, max_steps=20, saving_listeners=[Looks()])
    assert seen == [str(tmp_path / f"model.ckpt-{step}") for step in (0, 10, 20)]
    results = [estimator.evaluate(train_input_fn, steps=1, checkpoint_path=p) for p in seen]
    assert [r["global_step"] for r in results] == [0, 10, 20]
