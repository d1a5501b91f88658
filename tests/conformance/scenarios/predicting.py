import tensorflow.compat.v1 as tf
from scenarios import models


def one_example_at_a_time(model_dir, record):
    return list(models.trained(model_dir).predict(models.batches(2)))


def whole_batches(model_dir, record):
    return list(models.trained(model_dir).predict(models.batches(2), yield_single_examples=False))


def the_last_batch_is_smaller(model_dir, record):
    def input_fn():
        x = {"x": [1.0, 2.0, 3.0]}
        return tf.data.Dataset.from_tensor_slices(x).batch(2)

    estimator = models.trained(model_dir)
    record(list(estimator.predict(input_fn, yield_single_examples=False)))
    return list(estimator.predict(input_fn))


def _two_keys(features, labels, mode):
    doubled = models.weight() * features["x"]
    predictions = {"doubled": doubled, "input": features["x"], "step": tf.shape(doubled) * 0 + 5}
    return tf.estimator.EstimatorSpec(mode, predictions=predictions)


def predict_keys(model_dir, record):
    estimator = models.estimator(model_dir, _two_keys)
    keys = ["input"]
    return list(estimator.predict(models.batches(1), predict_keys=keys))


def predict_keys_that_are_missing(model_dir, record):
    """An unknown key among others is dropped; without any known key it is an error."""

    def model_fn(features, labels, mode):
        predictions = {"a": features["x"], "b": features["x"]}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    estimator = models.estimator(model_dir, model_fn)
    record(list(estimator.predict(models.batches(1), predict_keys=["a", "nothing"])))
    list(estimator.predict(models.batches(1), predict_keys=["nothing"]))


def predict_keys_of_a_tensor(model_dir, record):
    def model_fn(features, labels, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=features["x"])

    list(models.estimator(model_dir, model_fn).predict(models.batches(1), predict_keys=["a"]))


def predictions_are_a_tensor(model_dir, record):
    def model_fn(features, labels, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=tf.stack([features["x"]] * 2, 1))

    return list(models.estimator(model_dir, model_fn).predict(models.batches(1)))


def batches_of_different_length(model_dir, record):
    def model_fn(features, labels, mode):
        predictions = {"a": features["x"], "b": features["x"][:1]}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    estimator = models.estimator(model_dir, model_fn)
    record(list(estimator.predict(models.batches(1), yield_single_examples=False)))
    list(estimator.predict(models.batches(1)))


def predictions_of_strings(model_dir, record):
    def model_fn(features, labels, mode):
        x = features["x"]
        predictions = {
            "text": tf.as_string(x),
            "int": tf.cast(x * 8, tf.int64),
            "bool": x > 0.2,
            "double": tf.cast(x, tf.float64),
            "pair": tf.stack([x, x], axis=1),
        }
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    return list(models.estimator(model_dir, model_fn).predict(models.batches(1)))


def predict_without_a_checkpoint(model_dir, record):
    return list(models.estimator(model_dir).predict(models.batches(1)))


def predict_with_a_given_checkpoint(model_dir, record):
    estimator = models.trained(model_dir, steps=4, save_checkpoints_steps=2)
    path = model_dir + "/model.ckpt-2"
    return list(estimator.predict(models.batches(1), checkpoint_path=path))


def nothing_happens_before_next(model_dir, record):
    def input_fn():
        record("input_fn")
        return models.batches(1)()

    predictions = models.estimator(model_dir).predict(input_fn)
    record("made", type(predictions).__name__)
    next(predictions)
    predictions.close()
    record("closed")


def a_generator_given_up(model_dir, record):
    estimator = models.trained(model_dir)
    hook = models.Recording(record)
    predictions = estimator.predict(models.batches(1, size=4), hooks=[hook])
    record(next(predictions), next(predictions))
    predictions.close()
    record("closed")


def labels_are_dropped(model_dir, record):
    def model_fn(features, labels, mode):
        record("labels", labels)
        return models.model_fn(features, labels, mode)

    return list(models.estimator(model_dir, model_fn).predict(models.batches(1)))


def endless_predictions_without_a_dataset(model_dir, record):
    predictions = models.estimator(model_dir).predict(lambda: {"x": tf.constant([1.0, 2.0])})
    return [next(predictions) for _ in range(5)]


def predictions_of_no_data(model_dir, record):
    return list(models.trained(model_dir).predict(models.batches(0)))


def two_predictions_by_turns(model_dir, record):
    estimator = models.trained(model_dir)
    first, second = (estimator.predict(models.batches(2)) for _ in range(2))
    return [next(first), next(second), next(first), next(second)]


def predictions_are_scalars(model_dir, record):
    def model_fn(features, labels, mode):
        predictions = {"sum": tf.reduce_sum(features["x"])}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    estimator = models.estimator(model_dir, model_fn)
    record(list(estimator.predict(models.batches(1), yield_single_examples=False)))
    list(estimator.predict(models.batches(1)))


def predictions_of_an_empty_batch(model_dir, record):
    def input_fn():
        x = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
        return x.map(lambda v: {"x": tf.ones([tf.cast(v, tf.int32) - 1])})

    return list(models.estimator(model_dir).predict(input_fn))
