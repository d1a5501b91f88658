"""One process of a cluster: runs a scenario and writes down what it found.

python worker.py SCENARIO RESULT_FILE ARGUMENTS, with TF_CONFIG in the environment.
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))

import tensorflow.compat.v1 as tf
from support import legacy_models, recording
from support.recording import attempt
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator
from tpu_estimator_compat.engine.functions import tuning

GLOBAL_BATCH = 16


class Recorder(recording.Recorder):
    """Has its turn as often as it may."""

    def __init__(self, every: int = 1):
        super().__init__()
        self._every = every

    def steps_until_control(self, global_step):
        return self._every


class StopsAt(tf.train.SessionRunHook):
    """Asks to stop, or fails, once a step is reached."""

    def __init__(self, step: int, fail: bool):
        self._at, self._fail = step, fail

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if run_values.results >= self._at:
            if self._fail:
                raise ValueError("this hook fails")
            run_context.request_stop()


def share(params, dataset=None):
    """This host's part of batches that are the same for any number of hosts."""
    context = params["context"]
    size = params["batch_size"]
    first = context.current_host * size
    dataset = dataset or tf.data.Dataset.from_tensor_slices(legacy_models.examples()).repeat()
    dataset = dataset.batch(GLOBAL_BATCH, drop_remainder=True)

    def cut(features, labels):
        return features[first : first + size], labels[first : first + size]

    return dataset.map(cut)


def make(model_dir, train_op=None, use_tpu=True, spec=None, **kwargs):
    """The estimator of all scenarios."""
    model_fn = legacy_models.make_model_fn(train_op, **(spec or {}))
    config = {"save_checkpoints_steps": 10, "save_summary_steps": 5, "log_step_count_steps": 5}
    return legacy_models.make_estimator(
        model_dir, model_fn, use_tpu=use_tpu, loop=kwargs.pop("loop", 4), **{**config, **kwargs}
    )


def momentum(loss, params):
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def train(model_dir, steps=25, v1_behavior=False, **kwargs):
    if v1_behavior:
        tf.disable_v2_behavior()
    est = make(model_dir, momentum, **kwargs)
    # The chief looks at every step, others at every fifth: loops differ between machines.
    hook = Recorder(every=1 if est.config.is_chief else 5)
    calls = []

    def input_fn(params):
        calls.append([params["context"].current_host, params["batch_size"]])
        return share(params)

    est.train(input_fn, hooks=[hook], max_steps=steps)
    saved = est.latest_checkpoint()
    results = est.evaluate(legacy_models.train_input_fn, steps=4)
    predictions = list(est.predict(legacy_models.finite_input_fn(21)))
    est.train(input_fn, max_steps=steps)  # skipped by all
    return {
        "losses": hook.losses,
        "variables": hook.variables,
        "step": hook.step,
        "calls": calls,
        "saved": saved,
        "results": {name: float(value) for name, value in results.items()},
        "predictions": [int(p["class"]) for p in predictions],
    }


def is_worker_1() -> bool:
    return json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"


def finite_input_fn(batches):
    return lambda params: tf.data.Dataset.from_tensor_slices(
        legacy_models.examples(batches * params["batch_size"])
    ).batch(params["batch_size"], drop_remainder=True)


def own_dirs(model_dir, steps, **kwargs):
    est = make(f"{model_dir}-{'worker' if is_worker_1() else 'chief'}", **kwargs)
    hook = Recorder()
    est.train(share, hooks=[hook], max_steps=steps)
    return {"step": hook.step, "losses": hook.losses, "variables": hook.variables}


def one_stops(model_dir, fail):
    """A hook of the second machine stops, or fails, at step 12."""
    est = make(model_dir)
    hooks = [Recorder(every=7)]
    if is_worker_1():
        hooks.append(StopsAt(12, fail))
    error = attempt(lambda: est.train(share, hooks=hooks, max_steps=1000))
    return {"step": hooks[0].step, "error": error, "saved": est.latest_checkpoint()}


def uneven(model_dir):
    """The second machine has 7 batches, the first 12."""
    est = make(model_dir)
    hook = Recorder(every=20)
    error = attempt(
        lambda: est.train(finite_input_fn(7 if is_worker_1() else 12), hooks=[hook], max_steps=100)
    )
    return {"step": hook.step, "error": error, "saved": est.latest_checkpoint()}


def even(model_dir):
    """Both have 7 batches: training ends with them."""
    est = make(model_dir)
    hook = Recorder()
    error = attempt(lambda: est.train(finite_input_fn(7), hooks=[hook], max_steps=100))
    return {"step": hook.step, "error": error, "saved": est.latest_checkpoint()}


def long(model_dir):
    est = make(model_dir, momentum, save_checkpoints_steps=50, loop=5)
    error = attempt(lambda: est.train(share, max_steps=1_000_000))
    return {"error": error}


def preempted(model_dir):
    est = make(model_dir, momentum, save_checkpoints_steps=50, loop=10**6)
    marks = pathlib.Path(f"{model_dir}-chief"), pathlib.Path(f"{model_dir}-worker")

    class Started(tf.train.SessionRunHook):
        steps_until_control = staticmethod(lambda step: None)

        def after_create_session(self, session, coord):
            marks[is_worker_1()].touch()

    hook = Recorder(every=10**6)
    try:
        est.train(share, hooks=[hook, Started()], max_steps=10**8)
        ended = "returned"
    except SystemExit as exit:
        ended = f"exit {exit.code}"
    return {"ended": ended, "step": hook.step, "saved": est.latest_checkpoint()}


def host_calls(model_dir, local_batch=8):
    """A host_call that writes an event, and metrics, under `eval_distribute`."""

    def write(step, labels):
        with tf.compat.v2.summary.create_file_writer(str(model_dir) + "/host").as_default():
            with tf.compat.v2.summary.record_if(True):
                tf.compat.v2.summary.scalar("rows", tf.shape(labels)[0], step=step[0])
                tf.compat.v2.summary.scalar("steps", tf.shape(step)[0], step=step[0])
                return tf.summary.all_v2_summary_ops()

    def model_fn(features, labels, mode, params):
        spec = legacy_models.make_model_fn(momentum)(features, labels, mode, params)
        if mode != tpu.ModeKeys.TRAIN:
            return spec
        step = tf.reshape(tf.train.get_global_step(), [1])
        return spec._replace(host_call=(write, [step, labels]))

    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    est = legacy_models.make_estimator(
        model_dir,
        model_fn,
        use_tpu=True,
        loop=5,
        train_distribute=strategy,
        eval_distribute=strategy,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=5, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2
        ),
    )
    est.train(share, max_steps=10)
    results = est.evaluate(share, steps=4)
    return {"results": {name: float(value) for name, value in results.items()}}


def plain_estimator(model_dir):
    """An Estimator: its optimizer exchanges gradients by itself; input_context tells the share."""

    def model_fn(features, labels, mode):
        return legacy_models.make_model_fn()(
            features, labels, mode, {"use_tpu": False}
        ).as_estimator_spec()

    def input_fn(input_context):
        size = GLOBAL_BATCH // input_context.num_replicas_in_sync
        params = {"batch_size": size, "context": _Host(input_context.input_pipeline_id)}
        return share(params)

    hook = Recorder()
    config = estimator.RunConfig(str(model_dir), tf_random_seed=1, save_summary_steps=5)
    est = estimator.Estimator(model_fn, config=config)
    est.train(input_fn, hooks=[hook], max_steps=20)
    return {"variables": hook.variables, "losses": hook.losses}


class _Host:
    def __init__(self, current_host):
        self.current_host = current_host


def fit(model_dir):
    """Keras' fit on the adapted model, then the estimator goes on.

    To the second machine every step seems to take a thousand times as long.
    """
    if is_worker_1():
        object.__setattr__(tuning.NUMBERS, "clock", lambda: 1000 * time.perf_counter())
    est = make(model_dir, momentum)
    model = est.keras_model(share)
    features, labels = legacy_models.examples()
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(GLOBAL_BATCH).repeat()
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = data.with_options(options)
    history = model.fit(data, epochs=2, steps_per_epoch=10, verbose=0)
    hook = Recorder()
    est.train(share, hooks=[hook], steps=5)
    return {"loss": history.history["loss"], "step": hook.step, "variables": hook.variables}


def exchanges(model_dir):
    """Each machine trains on the other's half of 0, ..., 7, after an all-to-all and its inverse."""

    def model_fn(features, labels, mode, params):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        others = tpu_ops.collective_permute(features * w, [[0, 1], [1, 0]])
        mixed = tpu_ops.all_to_all(others, 0, 0, 2)
        loss = tf.reduce_mean((tpu_ops.all_to_all(mixed, 0, 0, 2) - features) ** 2)
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        half = tf.range(4, dtype=tf.float32) + 4 * params["context"].current_host
        return tf.data.Dataset.from_tensors((half, half)).repeat()

    est = legacy_models.make_estimator(
        model_dir, model_fn, use_tpu=True, loop=2, train_batch_size=8
    )
    hook = Recorder()
    est.train(input_fn, hooks=[hook], steps=2)
    return {"w": hook.variables["w"]}


def different_graphs(model_dir):
    def train_op(loss, params):
        if is_worker_1():
            loss += tf.reduce_sum(tf.get_variable("extra", [2]))
        return legacy_models.adam(loss, params)

    est = make(model_dir, train_op)
    return {"error": attempt(lambda: est.train(share, max_steps=5))}


def chief_cannot_start(model_dir):
    """The chief's scaffold fails; its process lives on."""

    def scaffold_fn():
        def init_fn(scaffold, session):
            raise ValueError("no first values")

        return tf.train.Scaffold(init_fn=init_fn)

    est = make(model_dir, spec={"scaffold_fn": lambda: scaffold_fn} if not is_worker_1() else {})
    error = attempt(lambda: est.train(share, max_steps=5))
    pathlib.Path(f"{model_dir}-{'worker' if is_worker_1() else 'chief'}").touch()
    while not pathlib.Path(f"{model_dir}-worker").exists():
        time.sleep(0.1)
    return {"error": error}


def schedule(model_dir, stop_early):
    est = make(model_dir, momentum)
    make_hook = tpu.estimator.experimental.make_early_stopping_hook
    stopping = make_hook(est, lambda: stop_early, run_every_secs=None, run_every_steps=8)
    hook = Recorder(every=5)
    returned = tpu.estimator.train_and_evaluate(
        est,
        tpu.estimator.TrainSpec(share, max_steps=40, hooks=[hook, stopping]),
        tpu.estimator.EvalSpec(legacy_models.train_input_fn, steps=1),
    )
    return {"returned": returned, "step": hook.step, "saved": est.latest_checkpoint()}


def lonely(model_dir):
    return {"error": attempt(lambda: make(model_dir, session_creation_timeout_secs=4))}


def too_late(model_dir):
    tf.compat.v2.constant(1).numpy() if tf.executing_eagerly() else None
    tf.config.list_logical_devices()
    return {"error": attempt(lambda: make(model_dir))}


def main(scenario: str, result: str, arguments: str) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    found = globals()[scenario](**json.loads(arguments))
    pathlib.Path(result).write_text(json.dumps({**found, "pid": os.getpid()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
