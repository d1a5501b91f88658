"""One of several processes that train on JAX's devices: runs a scenario, writes what it found.

python process.py SCENARIO RESULT_FILE ARGUMENTS, with TF_CONFIG in the environment.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[4]))

import numpy as np
import tensorflow as tf2
from support.recording import Recorder, attempt

import tpu_estimator_compat as tpu
import tpu_estimator_compat.v1 as tf

BATCH, DEVICES = 16, 4
CLUSTER = json.loads(os.environ.get("TF_CONFIG", "{}"))
PROCESSES = 2 if CLUSTER else 1
IS_SECOND = bool(CLUSTER) and CLUSTER["task"]["type"] == "worker"


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, 128, activation=tf.nn.relu)
    hidden = tf.layers.dense(hidden, 128, activation=tf.nn.relu)
    hidden = tf.layers.dropout(hidden, 0.1, training=mode == tpu.ModeKeys.TRAIN)
    prediction = tf.layers.dense(hidden, 1)
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": prediction})
    loss = tf.reduce_mean((prediction - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.001, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = (lambda y, p: {"mae": tf.metrics.mean_absolute_error(y, p)}, [labels, prediction])
    host_call = None
    if "host_dir" in params:
        host_call = (lambda **sent: write_rows(params["host_dir"], **sent), sent_of(loss, labels))
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=metrics, host_call=host_call
    )


def sent_of(loss, labels):
    step = tf.train.get_global_step()
    return {"step": tf.reshape(step, [1]), "loss": tf.reshape(loss, [1]), "labels": labels}


def write_rows(directory, step, loss, labels):
    with tf.compat.v2.summary.create_file_writer(directory).as_default():
        with tf.compat.v2.summary.record_if(True):
            tf.compat.v2.summary.scalar("losses", tf.shape(loss)[0], step=step[0])
            tf.compat.v2.summary.scalar("labels", tf.reduce_sum(labels), step=step[0])
            return tf.summary.all_v2_summary_ops()


def examples(count=128):
    x = np.random.RandomState(0).normal(size=(count, 8)).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True) ** 2


def input_fn(params):
    """This host's part of batches that are the same for any number of hosts."""
    size, host = params["batch_size"], params["context"].current_host
    dataset = tf.data.Dataset.from_tensor_slices(examples()).repeat()
    dataset = dataset.batch(BATCH, drop_remainder=True)
    return dataset.map(lambda x, y: tuple(t[host * size : (host + 1) * size] for t in (x, y)))


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(examples())
    return dataset.batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(examples(21)[0]).batch(params["batch_size"])


def finite_input_fn(batches):
    return lambda params: tf.data.Dataset.from_tensor_slices(
        examples(batches * params["batch_size"])
    ).batch(params["batch_size"], drop_remainder=True)


def make(model_dir, *, cores=None, loop=4, params=None, **kwargs):
    config = tpu.RunConfig(
        model_dir=str(model_dir),
        runtime="jax",
        tf_random_seed=5,
        tpu_config=tpu.TPUConfig(iterations_per_loop=loop, num_cores_per_replica=cores),
        **{"save_checkpoints_steps": 10, "save_summary_steps": 5, **kwargs},
    )
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        params=params or {"any": 0},
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
    )


def train(model_dir):
    params = {"host_dir": model_dir + "/host"}
    est = make(model_dir, loop=3 if IS_SECOND else 1, params=params)
    hook = Recorder()
    est.train(input_fn, hooks=[hook], max_steps=12)
    again = Recorder()
    est.train(input_fn, hooks=[again], max_steps=15)
    est.train(input_fn, max_steps=15)  # skipped by all
    results = est.evaluate(eval_input_fn, steps=4)
    predictions = [float(p["y"][0]) for p in est.predict(predict_input_fn)]
    split = Recorder()
    make(model_dir + "-split", cores=2).train(input_fn, hooks=[split], max_steps=6)
    return {
        "losses": {**hook.losses, **again.losses},
        "variables": again.variables,
        "step": again.step,
        "saved": est.latest_checkpoint(),
        "results": {name: float(value) for name, value in results.items()},
        "predictions": predictions,
        "split_variables": split.variables,
    }


class Fails(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        raise ValueError("this hook fails")


def ends(model_dir):
    def nan_input_fn(params):
        dataset = input_fn(params).enumerate()
        bad = params["context"].current_host  # of one host alone
        return dataset.map(
            lambda i, xy: (xy[0] * tf.where((i >= 6) & (bad == 1), np.nan, 1.0), xy[1])
        )

    cases = {
        "even": (finite_input_fn(7), []),
        "uneven": (finite_input_fn(5 if IS_SECOND else 9), []),
        "nan": (nan_input_fn, []),
        "fails": (input_fn, [Fails()] if IS_SECOND else []),
    }
    found = {}
    for name, (case_input_fn, hooks) in cases.items():
        est, hook = make(f"{model_dir}-{name}"), Recorder()
        error = attempt(lambda: est.train(case_input_fn, hooks=[hook, *hooks], max_steps=20))  # noqa: B023
        losses = sorted(hook.losses)
        found[name] = {"error": error, "saved": est.latest_checkpoint(), "steps": losses}
    return found


def long(model_dir):
    class Started(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            pathlib.Path(f"{model_dir}-{int(IS_SECOND)}").touch()

    est, hook = make(model_dir, loop=5), Recorder()
    ended = "returned"
    try:
        error = attempt(lambda: est.train(input_fn, hooks=[hook, Started()], max_steps=10**7))
    except SystemExit as exit:
        ended, error = f"exit {exit.code}", ""
    return {"ended": ended, "step": hook.step, "saved": est.latest_checkpoint(), "error": error}


def refused(model_dir):
    lonely = attempt(lambda: make(model_dir, session_creation_timeout_secs=2))
    import jax

    jax.config.update("jax_platforms", "cpu")  # libtpu, which preflight brings, may be in use
    jax.devices()
    return {"lonely": lonely, "late": attempt(lambda: make(model_dir))}


def introduced(model_dir):
    """A script that joins the others by itself, or a TPU pod: no TF_CONFIG."""
    import jax

    del os.environ["TF_CONFIG"]
    [chief], [worker] = CLUSTER["cluster"]["chief"], CLUSTER["cluster"]["worker"]
    assert chief != worker
    jax.distributed.initialize(chief, PROCESSES, int(IS_SECOND))
    estimator = make(model_dir)
    estimator.train(input_fn, max_steps=2)
    return {"is_chief": estimator.config.is_chief, "saved": estimator.latest_checkpoint()}


class Evaluating(tf.train.SessionRunHook):
    def __init__(self, est):
        self._estimator = est

    def after_run(self, run_context, run_values):
        self._estimator.evaluate(eval_input_fn, steps=1)


def spans(model_dir):
    def shuffled_input_fn(params):
        features, labels = examples()
        order = np.random.RandomState(int(IS_SECOND)).permutation(len(labels))
        dataset = tf.data.Dataset.from_tensor_slices((features[order], labels[order])).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    est, hook = make(model_dir, cores=DEVICES), Recorder()
    est.train(shuffled_input_fn, hooks=[Evaluating(est), hook], max_steps=6)
    again = Recorder()
    est.train(shuffled_input_fn, hooks=[again], max_steps=8)
    results = est.evaluate(eval_input_fn, steps=4)
    return {
        "variables": again.variables,
        "losses": {**hook.losses, **again.losses},
        "results": {name: float(value) for name, value in results.items()},
        "predictions": [float(p["y"][0]) for p in est.predict(predict_input_fn)],
        "alone": attempt(lambda: est.evaluate(eval_input_fn, steps=4)) if IS_SECOND else "",
    }


def shares(model_dir):
    """Evaluations and predictions that the processes share, or do not."""
    est = make(model_dir)
    est.train(input_fn, max_steps=2)
    found = {}
    if not IS_SECOND:
        found["alone"] = est.evaluate(eval_input_fn, steps=4, name="alone")
    est.train(input_fn, max_steps=4)
    found["shared"] = est.evaluate(eval_input_fn, steps=4)
    own_eval_input_fn = (lambda params: eval_input_fn(params).take(2)) if IS_SECOND else None
    found["chiefs"] = est.evaluate(own_eval_input_fn or eval_input_fn, steps=4)
    few = [p for p, _ in zip(est.predict(predict_input_fn), range(3), strict=False)]
    found["few"] = {str(i): p["y"][0] for i, p in enumerate(few)}
    found = {k: {n: float(v) for n, v in each.items()} for k, each in found.items()}
    steps = 2 if IS_SECOND else 4
    return found | {"uneven": attempt(lambda: est.evaluate(eval_input_fn, steps=steps))}


def tables(model_dir):
    """Embedding tables, of which each process has all."""
    from support import columns_probe, table_trainings

    os.environ["TPU_ESTIMATOR_COMPAT_RUNTIME"] = "jax"
    est = table_trainings.of_columns(model_dir + "/columns")
    dicts = table_trainings.of_dicts(model_dir + "/dicts")
    share, batches = table_trainings.share, columns_probe.input_fn
    return {
        "columns": table_trainings.trained(est, share, 3, 6),
        "dicts": table_trainings.trained(
            dicts, table_trainings.share_of(table_trainings.sentences), 3, 5
        ),
        "results": {k: float(v) for k, v in est.evaluate(batches, steps=3).items()},
        "predictions": [
            float(p["out"]) for p in est.predict(lambda params: batches(params).take(2))
        ],
    }


def pod(model_dir):
    """What processes do together besides, one after the other: starting them takes the longest."""
    return {f.__name__: f(f"{model_dir}-{f.__name__}") for f in (spans, tables, shares)}


SCENARIOS = {f.__name__: f for f in (train, ends, long, refused, introduced, pod)}


def main(scenario: str, result: str, arguments: str) -> None:
    cpu = tf2.config.list_physical_devices("CPU")[0]
    configuration = [tf2.config.LogicalDeviceConfiguration()] * (DEVICES // PROCESSES)
    tf2.config.set_logical_device_configuration(cpu, configuration)
    tf.logging.set_verbosity(tf.logging.INFO)
    found = SCENARIOS[scenario](**json.loads(arguments))
    pathlib.Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
