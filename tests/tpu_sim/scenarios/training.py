"""Scenarios: the way of a training."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import embedding
from tpu_estimator_compat import estimator as estimator_lib

from ..model import (
    FEATURES,
    Run,
    X,
    changed,
    dataset,
    eval_input,
    predict_input,
    scenario,
    spec_of,
    train_input,
)


@scenario
def plain(run: Run) -> None:
    run.train_evaluate_predict(run.estimator())


@scenario
def resume(run: Run) -> None:
    run.estimator().train(train_input, max_steps=10)
    estimator = run.estimator()
    estimator.train(train_input, steps=7)
    run.train_evaluate_predict(estimator, steps=20)


@scenario
def embedding_tables(run: Run) -> None:
    """Ids, of any number, stay on the host; cores take activations and give gradients."""

    def with_ids(input_fn):
        def add(features, labels=None):
            ids = features["id"]
            tags = tf.stack([ids % 3, ids % 5], axis=1)  # 0 is none
            features = {**features, "item": ids % 7, "tags": tf2.sparse.from_dense(tags)}
            return features if labels is None else (features, labels)

        return lambda params: input_fn(params).map(add)

    def model(features, labels, mode, params):
        x = tf.concat([features["x"], features["item"], features["tags"]], axis=1)
        return spec_of({**features, "x": x}, labels, mode)

    def table(rows: int) -> embedding.TableConfig:
        initializer = tf.random_normal_initializer(seed=rows)
        return embedding.TableConfig(rows, 3, initializer, combiner="mean")

    estimator = run.estimator(
        model,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            table_to_config_dict={"items": table(7), "tags": table(5)},
            feature_to_config_dict={
                "item": embedding.FeatureConfig("items"),
                "tags": embedding.FeatureConfig("tags"),
            },
            optimization_parameters=embedding.AdagradParameters(0.1),
        ),
    )
    estimator.train(with_ids(train_input), max_steps=10)
    run.see("evaluation", estimator.evaluate(with_ids(eval_input), steps=4))
    found = list(estimator.predict(with_ids(predict_input)))
    run.see("predictions", [float(p["y"][0]) for p in found])


@scenario
def single_steps(run: Run) -> None:
    estimator = run.estimator(tpu_config={"iterations_per_loop": 1})
    run.train_evaluate_predict(estimator, steps=25)


@scenario
def long_loops(run: Run) -> None:
    estimator = run.estimator(
        tpu_config={"iterations_per_loop": 30}, run_config={"save_checkpoints_steps": 60}
    )
    run.train_evaluate_predict(estimator, steps=100)


@scenario
def end_of_data(run: Run) -> None:
    def input_fn(params):
        return dataset(96).batch(params["batch_size"], drop_remainder=True)

    estimator = run.estimator()
    estimator.train(input_fn, max_steps=100)
    run.see("step", estimator.get_variable_value("global_step"))
    run.see("evaluation", estimator.evaluate(eval_input, steps=100))


@scenario
def loss_is_nan(run: Run) -> None:
    def change(output, hidden):
        bad = tf.equal(tf.train.get_global_step(), 7)
        return output * tf.where(bad, np.nan, 1.0)

    estimator = run.estimator(changed(change))
    try:
        estimator.train(train_input, max_steps=20)
    except tf.train.NanLossDuringTrainingError as error:
        run.see("error", str(error))
    run.see("saved", estimator.latest_checkpoint().partition("model/")[2])


@scenario
def train_and_evaluate(run: Run) -> None:
    def receiver():
        x = tf.placeholder(tf.float32, [None, FEATURES], name="x")
        ids = tf.placeholder(tf.int64, [None], name="id")
        return estimator_lib.export.ServingInputReceiver({"x": x, "id": ids}, {"x": x, "id": ids})

    estimator = run.estimator()
    exporter = estimator_lib.LatestExporter("latest", receiver)
    results, exports = estimator_lib.train_and_evaluate(
        estimator,
        estimator_lib.TrainSpec(train_input, max_steps=20),
        estimator_lib.EvalSpec(eval_input, steps=4, exporters=exporter, throttle_secs=0),
    )
    run.see("evaluation", results)
    loaded = tf2.saved_model.load(exports[0].decode(), tags=["serve"])
    served = loaded.signatures["serving_default"](
        x=tf2.constant(X[:4]), id=tf2.range(4, dtype=tf2.int64)
    )
    run.see("served", {name: value.numpy() for name, value in served.items()})


@scenario
def input_state(run: Run) -> None:
    for steps in (10, 20):
        estimator = run.estimator(run_config={"save_input_state": True})
        estimator.train(train_input, max_steps=steps)
