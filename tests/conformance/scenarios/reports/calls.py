"""Reports about several calls in one process, threads and graphs of the script."""

import copy
import queue
import threading

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def two_predictions_of_two_estimators(model_dir, record):
    """After tensorflow#20506: predictions of one estimator are the input of another."""
    first = models.trained(f"{model_dir}/first", 2)
    second = models.trained(f"{model_dir}/second", 1)

    def input_fn():
        made = [{"x": each["doubled"]} for each in first.predict(models.batches(2))]

        def generate():
            yield from made

        return tf.data.Dataset.from_generator(generate, {"x": tf.float32}, {"x": []}).batch(2)

    record(list(second.predict(input_fn)))
    one, other = first.predict(models.batches(1)), second.predict(models.batches(1))
    try:
        record([next(one), next(other), next(one), next(other)])
    except Exception as error:
        record(type(error).__name__)


def a_prediction_that_is_fed_on(model_dir, record):
    """After tensorflow#4648, #31021, rl#1: a prediction that stays open, fed by a queue."""
    est = models.trained(model_dir, 2)
    waiting = queue.Queue()

    def generate():
        while True:
            value = waiting.get()
            if value is None:
                return
            yield {"x": np.float32(value)}

    def input_fn():
        return tf.data.Dataset.from_generator(generate, {"x": tf.float32}, {"x": []}).batch(1)

    predictions = est.predict(input_fn)
    for value in (1.0, 2.0, 3.0):
        waiting.put(value)
        record(next(predictions))
    waiting.put(None)
    record(list(predictions))


def predictions_of_threads(model_dir, record):
    """After multithreaded-estimators#5: each of some threads trains or predicts by itself."""
    est = models.trained(model_dir, 2)
    told = {}

    def work(name):
        try:
            told[name] = [float(each["doubled"]) for each in est.predict(models.batches(1))]
        except Exception as error:
            told[name] = type(error).__name__

    tf.logging.set_verbosity(tf.logging.ERROR)  # who is first is chance
    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record(told)
    trains = threading.Thread(target=lambda: est.train(models.batches(), steps=1))
    trains.start()
    trains.join()
    record(est.get_variable_value("global_step"))


def a_graph_of_the_script(model_dir, record):
    """After tensorflow#8042: calls within a graph, a session, a device or a scope of the script."""
    est = models.estimator(model_dir)
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        with tf.variable_scope("outer"), tf.device("/cpu:0"), tf.name_scope("scope"):
            est.train(models.batches(), steps=1)
        record(len(graph.get_operations()), sorted(est.get_variable_names()))
        with tf.Session() as session:
            kept = tf.get_variable("kept", initializer=2.0)
            session.run(kept.initializer)
            est.train(models.batches(), steps=1)
            record(est.evaluate(models.batches(), steps=1))
            record(session.run(kept), tf.get_default_session() is session)
    record(tf.get_default_session() is None)


def copies_of_an_estimator(model_dir, record):
    """After tensorflow#13895: estimators of one model_dir, by copies and with other params."""

    def model_fn(features, labels, mode, params):
        record(mode, params)
        params["seen"] = True
        return models.model_fn(features, labels, mode)

    params = {"rate": 1}
    est = models.estimator(model_dir, model_fn, params)
    est.train(models.batches(), steps=1)
    params["rate"] = 2
    other = models.estimator(model_dir, model_fn, {**est.params, "rate": 3})
    other.train(models.batches(), steps=1)
    again = copy.copy(est)
    again.train(models.batches(), steps=1)
    record(est.params, params, other.params, est.get_variable_value("global_step"))


def a_loop_over_epochs(model_dir, record):
    """After tensorflow#13895, #18394: epochs by a loop of train and evaluate, with logs."""
    est = models.estimator(model_dir, keep_checkpoint_max=2)
    for _ in range(3):
        est.train(models.batches(2))
        record(est.evaluate(models.batches(2), name="train")["error"])
        record([each["doubled"] for each in est.predict(models.batches(1))])


def a_timeline_without_a_graph(model_dir, record):
    """After tensorflow#19903's workaround: variables are asked for before and after a training."""
    est = models.estimator(model_dir)
    models.attempt(record, est.get_variable_names)
    models.attempt(record, est.get_variable_value, "w")
    models.attempt(record, est.evaluate, models.batches(), steps=1)
    models.attempt(record, lambda: next(est.predict(models.batches(1))))
    est.train(models.batches(), steps=1)
    models.attempt(record, est.get_variable_value, "w:0")
    models.attempt(record, est.get_variable_value, "w")
    record(est.latest_checkpoint(), est.eval_dir(), est.eval_dir("name"))
