import os

import tensorflow.compat.v1 as tf
from scenarios import models


def _eval_spec(**more):
    arguments = {"steps": 2, "start_delay_secs": 0, "throttle_secs": 0, **more}
    return tf.estimator.EvalSpec(models.batches(), **arguments)


def _receiver_fn():
    x = tf.placeholder(tf.float32, [None], name="served")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def train_and_evaluate(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=5)
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())


def train_and_evaluate_again(model_dir, record):
    """After max_steps nothing is trained, and None returned, or the evaluation."""
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=3)
    first = tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())
    return [first, tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())]


def train_and_evaluate_with_fractions(model_dir, record):
    """Quotients, as in Python 2, for max_steps and steps."""
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=7 / 2)
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(steps=3 / 2))


def train_and_evaluate_without_max_steps(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(3))
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(steps=1))


def train_and_evaluate_with_names_and_hooks(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(
        models.batches(), max_steps=3, hooks=[models.Recording(record, "train")]
    )
    eval_spec = _eval_spec(name="named", hooks=[models.Recording(record, "eval")])
    return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


def train_and_evaluate_with_listeners(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(
        models.batches(), max_steps=4, saving_listeners=[models.Listener(record)]
    )
    tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())


def throttled_evaluations(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=1)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=4)
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(throttle_secs=1000))


def specs_refuse(model_dir, record):
    good = models.batches()
    for make in (
        lambda: tf.estimator.TrainSpec(3),
        lambda: tf.estimator.TrainSpec(good, max_steps=0),
        lambda: tf.estimator.TrainSpec(good, hooks=[3]),
        lambda: tf.estimator.TrainSpec(good, saving_listeners=[3]),
        lambda: tf.estimator.EvalSpec(3),
        lambda: tf.estimator.EvalSpec(good, steps=0),
        lambda: tf.estimator.EvalSpec(good, name=3),
        lambda: tf.estimator.EvalSpec(good, name=""),
        lambda: tf.estimator.EvalSpec(good, hooks=[3]),
        lambda: tf.estimator.EvalSpec(good, exporters=[3]),
        lambda: tf.estimator.EvalSpec(good, start_delay_secs=-1),
        lambda: tf.estimator.EvalSpec(good, throttle_secs=-1),
        lambda: tf.estimator.EvalSpec(
            good, exporters=[tf.estimator.FinalExporter("a", _receiver_fn)] * 2
        ),
    ):
        models.attempt(record, make)


def specs_have_fields(model_dir, record):
    train_spec = tf.estimator.TrainSpec(models.batches())
    eval_spec = tf.estimator.EvalSpec(models.batches())
    record(list(train_spec._fields), list(eval_spec._fields))
    record(train_spec.max_steps, eval_spec.steps, eval_spec.name, eval_spec.throttle_secs)
    return [eval_spec.start_delay_secs, eval_spec.exporters, train_spec.hooks]


def train_and_evaluate_refuses(model_dir, record):
    estimator = models.estimator(model_dir)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=1)
    for arguments in (
        (3, train_spec, _eval_spec()),
        (estimator, 3, _eval_spec()),
        (estimator, train_spec, 3),
    ):
        models.attempt(record, tf.estimator.train_and_evaluate, *arguments)


class _Notes(tf.estimator.Exporter):
    def __init__(self, record, name="notes"):
        self.record, self._name = record, name

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.record(self._name, export_path, checkpoint_path, eval_result)
        self.record(self._name, "final", bool(is_the_final_export))
        return f"{self._name} {int(eval_result['global_step'])}"


def an_exporter_of_ones_own(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=4)
    eval_spec = _eval_spec(exporters=[_Notes(record), _Notes(record, "second")])
    return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


def _exports(model_dir, exporter, **more):
    estimator = models.estimator(model_dir, save_checkpoints_steps=1)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=3)
    _, exports = tf.estimator.train_and_evaluate(
        estimator, train_spec, _eval_spec(exporters=exporter, **more)
    )
    folder = os.path.join(model_dir, "export", exporter.name)
    made = len(os.listdir(folder)) if os.path.isdir(folder) else None
    tf.gfile.DeleteRecursively(model_dir + "/export")
    return [made, [type(path).__name__ for path in exports]]


def final_exporter(model_dir, record):
    return _exports(model_dir, tf.estimator.FinalExporter("final", _receiver_fn))


def latest_exporter(model_dir, record):
    exporter = tf.estimator.LatestExporter("latest", _receiver_fn, exports_to_keep=2)
    return _exports(model_dir, exporter)


def best_exporter(model_dir, record):
    return _exports(model_dir, tf.estimator.BestExporter("best", _receiver_fn))


def best_exporter_with_a_compare_fn(model_dir, record):
    def compare_fn(best_eval_result, current_eval_result):
        record(sorted(best_eval_result), sorted(current_eval_result))
        return current_eval_result["global_step"] > best_eval_result["global_step"]

    exporter = tf.estimator.BestExporter("best", _receiver_fn, compare_fn=compare_fn)
    return _exports(model_dir, exporter)


def exporters_refuse(model_dir, record):
    for make in (
        lambda: tf.estimator.LatestExporter("a", _receiver_fn, exports_to_keep=0),
        lambda: tf.estimator.BestExporter("a", _receiver_fn, exports_to_keep=0),
        lambda: tf.estimator.BestExporter("a", _receiver_fn, compare_fn=None),
        lambda: tf.estimator.BestExporter("a", _receiver_fn, compare_fn=lambda a, b: True),
    ):
        models.attempt(record, make)


def _early(model_dir, name, *arguments, **more):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    os.makedirs(estimator.eval_dir())
    make = getattr(tf.estimator.experimental, name)
    hook = make(estimator, *arguments, run_every_secs=None, run_every_steps=1, **more)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=12, hooks=[hook])
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())


def stop_if_lower(model_dir, record):
    return _early(model_dir, "stop_if_lower_hook", "loss", 0.5)


def stop_if_higher(model_dir, record):
    return _early(model_dir, "stop_if_higher_hook", "global_step_not_there", 0.5, min_steps=4)


def stop_if_no_decrease(model_dir, record):
    return _early(model_dir, "stop_if_no_decrease_hook", "loss", 2)


def stop_if_no_increase(model_dir, record):
    return _early(model_dir, "stop_if_no_increase_hook", "loss", 2, min_steps=4)


def early_stopping_of_ones_own(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    asked = []

    def should_stop():
        asked.append(1)
        return len(asked) >= 3

    hook = tf.estimator.experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=2
    )
    estimator.train(models.batches(), steps=20, hooks=[hook])
    return [len(asked), sorted(estimator.get_variable_names())]


def early_stopping_refuses(model_dir, record):
    estimator = models.estimator(model_dir)
    make = tf.estimator.experimental.make_early_stopping_hook
    for arguments in (
        (estimator, lambda: True, 1, 1),
        (estimator, lambda: True, None, None),
        (3, lambda: True, None, 1),
        (estimator, 3, None, 1),
    ):
        models.attempt(record, make, *arguments)


def read_eval_metrics(model_dir, record):
    estimator = models.trained(model_dir)
    estimator.evaluate(models.batches(), steps=2)
    estimator.train(models.batches(), steps=1)
    estimator.evaluate(models.batches(), steps=2)
    from tensorflow_estimator.python.estimator import early_stopping

    metrics = early_stopping.read_eval_metrics(estimator.eval_dir())
    return [[step, dict(values)] for step, values in metrics.items()]


def in_memory_evaluation(model_dir, record):
    estimator = models.estimator(model_dir)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(
        estimator, models.batches(), steps=2, every_n_iter=2, name="memory"
    )
    estimator.train(models.batches(), hooks=[hook], steps=5)


def in_memory_evaluation_with_hooks(model_dir, record):
    estimator = models.estimator(model_dir)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(
        estimator, models.batches(2), hooks=[models.Recording(record)], every_n_iter=3
    )
    estimator.train(models.batches(), hooks=[hook], steps=4)


def in_memory_evaluation_refuses(model_dir, record):
    estimator = models.estimator(model_dir)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook
    for arguments in ({"every_n_iter": 0}, {"every_n_iter": -3}):
        models.attempt(record, hook, estimator, models.batches(), **arguments)


def stop_at_checkpoint_step(model_dir, record):
    estimator = models.estimator(model_dir)
    make = tf.estimator.experimental.make_stop_at_checkpoint_step_hook
    hook = make(estimator, last_step=3)
    record(type(hook).__name__)
    estimator.train(models.batches(), hooks=[hook])


def train_and_evaluate_a_tpu_estimator(model_dir, record):
    config = models.tpu_config(model_dir, save_checkpoints_steps=2)
    estimator = models.tpu_estimator(model_dir, config=config)
    train_spec = tf.estimator.TrainSpec(models.tpu_batches(), max_steps=4)
    eval_spec = tf.estimator.EvalSpec(models.tpu_batches(), steps=2, throttle_secs=0)
    return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


def an_error_in_the_schedule(model_dir, record):
    def model_fn(features, labels, mode):
        if mode == "eval":
            raise KeyError("no evaluation")
        return models.model_fn(features, labels, mode)

    estimator = models.estimator(model_dir, model_fn, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=4)
    tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())


def eval_dir_with_a_name(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    hook = tf.estimator.experimental.stop_if_lower_hook(
        estimator,
        "loss",
        0.5,
        eval_dir=estimator.eval_dir("x"),
        run_every_secs=None,
        run_every_steps=1,
    )
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=12, hooks=[hook])
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(name="x"))
