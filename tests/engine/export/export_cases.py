"""Models to export, each with its receivers and requests; run here and in the original.

`legacy_namespace` holds the names that TensorFlow 2.21 lacks: `tpu`, `estimator`, `layers`.
"""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, layers, tpu

from engine.export.export_data import (
    CLASSES,
    FEATURES,
    WORDS,
    bare_input_fn,
    dict_input_fn,
    points,
    serialized,
    sparse_input_fn,
    word_input_fn,
    write_vocabulary,
)

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Case:
    """Something to export.

    Attributes:
      model_fn: the model.
      input_fn: its training data.
      export: takes estimator and directory, exports.
      requests: signature name to the inputs of a request.
      use_tpu_estimator: a TPUEstimator, else an Estimator.
      arguments: more arguments of the estimator.
      served: whether there is a graph to serve without a TPU.
      graphs: how many there are.
      own_ops: whether the ops are the model_fn's own, else Keras makes them.
    """

    model_fn: Callable[..., Any]
    input_fn: Callable[..., Any]
    export: Callable[[Any, str], bytes]
    requests: Callable[[], dict[str, Arrays]]
    use_tpu_estimator: bool = True
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    served: bool = True
    graphs: int = 1
    own_ops: bool = True


def exports(receiver, **arguments):
    return lambda est, base: est.export_saved_model(base, receiver, **arguments)


def logits_of(x):
    with tf.variable_scope("tower"):
        hidden = tf.get_variable(
            "hidden", [FEATURES, 8], initializer=tf.glorot_uniform_initializer(1)
        )
        output = tf.get_variable(
            "output", [8, CLASSES], initializer=tf.glorot_uniform_initializer(2)
        )
        return tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), output, name="logits")


def metric_fn(labels, logits):
    return {
        "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1)),
        "mean_logit": tf.metrics.mean(logits),
    }


def spec_of(mode, labels, logits, predictions, export_outputs=None, **fields):
    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(
            mode, predictions=predictions, export_outputs=export_outputs, **fields
        )
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == estimator.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, predictions=predictions, eval_metrics=(metric_fn, [labels, logits])
        )
    optimizer = tf.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, predictions=predictions)


# The default signature, made of predictions.


def plain_model_fn(features, labels, mode, params):
    logits = logits_of(features["x"])
    predictions = {"probabilities": tf.nn.softmax(logits), "class": tf.argmax(logits, -1)}
    return spec_of(mode, labels, logits, predictions)


def raw_receiver():
    x = np.zeros([1, FEATURES], np.float32)
    return estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(x, name="x")})()


def export_old_name(est, base):
    return est.export_savedmodel(base, raw_receiver)


def default_request():
    return {"serving_default": {"x": points(3)}}


# One bare tensor, a placeholder of the script's own; predictions are a bare tensor too.


def bare_model_fn(features, labels, mode, params):
    logits = logits_of(features)
    return spec_of(mode, labels, logits, tf.nn.softmax(logits))


def bare_receiver():
    features = tf.placeholder(tf.float32, [None, FEATURES], name="points")
    return estimator.export.TensorServingInputReceiver(features, features)


# Several outputs of all kinds, tf.Examples, and raw features as an alternative.


def heads_model_fn(features, labels, mode, params):
    logits = logits_of(features["x"])
    scores = tf.nn.softmax(logits)
    names = tf.as_string(tf.broadcast_to(tf.range(CLASSES), tf.shape(logits)))
    outputs = None
    if mode == estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": estimator.export.ClassificationOutput(scores, names),
            "scores": estimator.export.ClassificationOutput(scores=scores),
            "names": estimator.export.ClassificationOutput(classes=names),
            "margin": estimator.export.RegressionOutput(logits[:, 0] - logits[:, 1]),
            "everything": estimator.export.PredictOutput({"logits": logits, "scores": scores}),
            "one": estimator.export.PredictOutput(logits),
            "mine": ExtremesOutput(logits),
        }
    return spec_of(mode, labels, logits, {"scores": scores}, outputs)


class ExtremesOutput(estimator.export.ExportOutput):
    def __init__(self, logits):
        self._logits = logits

    def as_signature_def(self, receiver_tensors):
        outputs = {
            "least": tf.reduce_min(self._logits, -1),
            "most": tf.reduce_max(self._logits, -1),
        }
        return tf.saved_model.predict_signature_def(receiver_tensors, outputs)


def parsing_receiver():
    spec = {
        "x": tf.FixedLenFeature([FEATURES], tf.float32),
        "word": tf.FixedLenFeature([], tf.string, default_value=""),
    }
    made = estimator.export.build_parsing_serving_input_receiver_fn(spec)()
    alternatives = {"raw": {"x": made.features["x"]}}
    return estimator.export.ServingInputReceiver(made.features, made.receiver_tensors, alternatives)


def heads_requests():
    examples = {"inputs": serialized()}
    return {
        "serving_default": examples,
        "scores": examples,
        "names": examples,
        "margin": examples,
        "everything": {"examples": serialized()},
        "one": {"examples": serialized()},
        "mine": {"examples": serialized()},
        "raw:everything": {"x": points(5)},
        "raw:one": {"x": points(5)},
        "raw:mine": {"x": points(5)},
    }


# Sparse features.


def sparse_model_fn(features, labels, mode, params):
    table = tf.get_variable(
        "table", [len(WORDS), CLASSES], initializer=tf.glorot_uniform_initializer(4)
    )
    hashed = tf.strings.to_hash_bucket_fast(features["word"].values, len(WORDS))
    ids = tf.SparseTensor(features["word"].indices, hashed, features["word"].dense_shape)
    logits = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    return spec_of(mode, labels, logits, {"logits": logits})


def sparse_receiver():
    make = estimator.export.build_parsing_serving_input_receiver_fn
    return make({"word": tf.VarLenFeature(tf.string)})()


def sparse_requests():
    return {"serving_default": {"examples": serialized()}}


# Strings, a table from a vocabulary file (an asset), a table of constants, extra assets.


def tables_model_fn(features, labels, mode, params):
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            params["vocabulary"],
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        num_oov_buckets=1,
    )
    names = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.range(CLASSES, dtype=tf.int64), tf.constant(["red", "green", "blue"])
        ),
        default_value="none",
    )
    ids = table.lookup(features["word"])
    embedding = tf.get_variable(
        "embedding", [len(WORDS) + 1, FEATURES], initializer=tf.glorot_uniform_initializer(3)
    )
    logits = logits_of(features["x"] + tf.nn.embedding_lookup(embedding, ids))
    predictions = {"ids": ids, "name": names.lookup(tf.argmax(logits, -1)), "logits": logits}
    return spec_of(mode, labels, logits, predictions)


def tables_receiver():
    word = tf.placeholder(tf.string, [None], name="word")
    x = tf.placeholder(tf.float32, [None, FEATURES], name="x")
    features = {"word": tf.strings.lower(word), "x": x}
    return estimator.export.ServingInputReceiver(features, {"word": word, "x": x})


def export_tables(est, base):
    extra = {"notes/words.txt": est.params["vocabulary"]}
    return est.export_saved_model(base, tables_receiver, assets_extra=extra)


def tables_requests():
    words = np.array([b"The", b"fox", b"unknown"], object)
    return {"serving_default": {"word": words, "x": points(3)}}


# All modes of a plain Estimator; averaged weights through the scaffold's saver; control flow.


def modes_model_fn(features, labels, mode, params):
    logits = logits_of(features["x"])
    averages = tf.train.ExponentialMovingAverage(0.9)
    predictions = {"logits": logits, "halved": _halved(logits)}
    if mode == estimator.ModeKeys.PREDICT:
        saver = tf.train.Saver(averages.variables_to_restore(), sharded=True)
        scaffold = tf.train.Scaffold(saver=saver)
        return estimator.EstimatorSpec(mode, predictions=predictions, scaffold=scaffold)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == estimator.ModeKeys.EVAL:
        return estimator.EstimatorSpec(
            mode, loss=loss, predictions=predictions, eval_metric_ops=metric_fn(labels, logits)
        )
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    step = optimizer.minimize(loss, tf.train.get_global_step())
    with tf.control_dependencies([step]):
        train_op = averages.apply(tf.trainable_variables())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, predictions=predictions)


def _halved(logits):
    def halve(x):
        return tf.while_loop(lambda x: tf.reduce_max(tf.abs(x)) > 1.0, lambda x: [x / 2.0], [x])

    return tf.cond(tf.reduce_sum(logits) > 0.0, lambda: halve(logits), lambda: logits)


def supervised_receiver():
    x = tf.placeholder(tf.float32, [None, FEATURES], name="x")
    label = tf.placeholder(tf.int32, [None], name="label")
    return estimator.experimental.build_raw_supervised_input_receiver_fn(
        {"x": x}, {"label": label}
    )()


def unwrapped_receiver():
    """Bare labels, as this model_fn takes them."""
    made = supervised_receiver()
    return SupervisedReceiver(made.features, made.labels["label"], made.receiver_tensors)


class SupervisedReceiver:
    """A receiver of the script's own: only its attributes count."""

    def __init__(self, features, labels, receiver_tensors):
        self.features, self.labels, self.receiver_tensors = features, labels, receiver_tensors


def export_modes(est, base):
    receivers = {
        estimator.ModeKeys.TRAIN: unwrapped_receiver,
        estimator.ModeKeys.EVAL: unwrapped_receiver,
        estimator.ModeKeys.PREDICT: raw_receiver,
    }
    return est.experimental_export_all_saved_models(base, receivers)


# tf.layers with batch normalization.


def convnet_model_fn(features, labels, mode, params):
    training = mode == estimator.ModeKeys.TRAIN
    x = tf.reshape(features["x"], [-1, 2, 2, 1])
    x = layers.conv2d(x, 4, 2, padding="same", activation=tf.nn.relu)
    x = layers.batch_normalization(x, training=training, momentum=0.5)
    logits = layers.dense(layers.flatten(x), CLASSES)
    return spec_of(mode, labels, logits, {"logits": logits})


# Keras layers, which are others in TensorFlow 2.21 than in the original's.


def keras_model_fn(features, labels, mode, params):
    training = mode == estimator.ModeKeys.TRAIN
    x = tf.keras.layers.Dense(8, activation="relu")(features["x"])
    x = tf.keras.layers.BatchNormalization()(x, training=training)
    x = tf.keras.layers.Dropout(0.1)(x, training=training)
    logits = tf.keras.layers.Dense(CLASSES)(x)
    return spec_of(mode, labels, logits, {"logits": logits})


# Graphs for TPU: what is written can be inspected, and its `serve` graph served.


def tpu_model_fn(features, labels, mode, params):
    """API version 1: the estimator puts all of it on the TPU, but for the outside compilation."""
    logits = logits_of(features["x"])
    scores = tf.nn.softmax(logits)
    predictions = {"scores": scores, "told_tpu": tf.fill(tf.shape(scores)[:1], params["use_tpu"])}
    outputs = None
    if mode == estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": estimator.export.PredictOutput({"logits": logits}),
            "scores": estimator.export.ClassificationOutput(scores=scores),
        }

        def name_classes(logits):
            outputs["names"] = estimator.export.PredictOutput(
                {"names": tf.as_string(tf.argmax(logits, -1))}
            )

        tf.tpu.outside_compilation(name_classes, logits)
    return spec_of(mode, labels, logits, predictions, outputs)


def averaged_tpu_model_fn(features, labels, mode, params):
    """Restores averages through a scaffold_fn, as image models of the time did."""
    logits = logits_of(features["x"])
    averages = tf.train.ExponentialMovingAverage(0.9)
    if mode == estimator.ModeKeys.PREDICT:

        def scaffold_fn():
            return tf.train.Scaffold(saver=tf.train.Saver(averages.variables_to_restore()))

        return spec_of(mode, labels, logits, logits, scaffold_fn=scaffold_fn)
    spec = spec_of(mode, labels, logits, logits)
    if mode == estimator.ModeKeys.TRAIN:
        with tf.control_dependencies([spec.train_op]):
            return spec._replace(train_op=averages.apply(tf.trainable_variables()))
    return spec


def wrapping_model_fn(features, labels, mode, params):
    """API version 2: the model_fn itself puts parts on the TPU."""

    def on_tpu(x):
        return [logits_of(x)]

    if params["use_tpu"]:
        [logits] = tpu.inference_on_tpu(on_tpu, [features["x"]], 1, 8, 1000, [4, 8])
        logits = tf.ensure_shape(logits, [None, CLASSES])
    else:
        [logits] = on_tpu(features["x"])
    return spec_of(mode, labels, logits, {"logits": logits, "class": tf.argmax(logits, -1)})


def nested_model_fn(features, labels, mode, params):
    """API version 2: the model_fn puts a whole model_fn on the TPU, behind batching."""
    if params["use_tpu"]:
        config = tpu.BatchConfig(2, 8, 1000, [4, 8])
        return tpu.model_fn_inference_on_tpu(
            plain_model_fn, features, params=params, batch_config=config
        )
    return plain_model_fn(features, labels, mode, params)


def unbatched_model_fn(features, labels, mode, params):
    """API version 2 without batching."""
    if params["use_tpu"]:
        [logits] = tpu.inference_on_tpu(lambda x: [logits_of(x)], [features["x"]], 1, 0, 0)
    else:
        logits = logits_of(features["x"])
    return spec_of(mode, labels, logits, {"logits": logits})


def tpu_case(model_fn, version, export_to_cpu=True):
    return Case(
        model_fn,
        dict_input_fn,
        exports(raw_receiver),
        default_request,
        arguments={
            "export_to_tpu": True,
            "export_to_cpu": export_to_cpu,
            "export_saved_model_api_version": version,
        },
        served=export_to_cpu,
        graphs=2 if export_to_cpu else 1,
    )


export_plain = exports(raw_receiver)
CASES = {
    "plain": Case(plain_model_fn, dict_input_fn, export_plain, default_request),
    "old_name": Case(plain_model_fn, dict_input_fn, export_old_name, default_request),
    "as_text": Case(
        plain_model_fn, dict_input_fn, exports(raw_receiver, as_text=True), default_request
    ),
    "bare": Case(
        bare_model_fn,
        bare_input_fn,
        exports(bare_receiver),
        lambda: {"serving_default": {"input": points(3)}},
    ),
    "heads": Case(heads_model_fn, dict_input_fn, exports(parsing_receiver), heads_requests),
    "sparse": Case(sparse_model_fn, sparse_input_fn, exports(sparse_receiver), sparse_requests),
    "tables": Case(tables_model_fn, word_input_fn, export_tables, tables_requests),
    "modes": Case(modes_model_fn, dict_input_fn, export_modes, default_request, False, graphs=3),
    "eval_only": Case(
        modes_model_fn,
        dict_input_fn,
        exports(unwrapped_receiver, experimental_mode=estimator.ModeKeys.EVAL),
        dict,
        False,
        served=False,
    ),
    "convnet": Case(convnet_model_fn, dict_input_fn, export_plain, default_request),
    "keras_layers": Case(
        keras_model_fn, dict_input_fn, export_plain, default_request, own_ops=False
    ),
    "tpu_1": tpu_case(tpu_model_fn, 1),
    "tpu_averaged": tpu_case(averaged_tpu_model_fn, 1),
    "tpu_only": tpu_case(plain_model_fn, 1, export_to_cpu=False),
    "tpu_2": tpu_case(wrapping_model_fn, 2),
    "tpu_2_nested": tpu_case(nested_model_fn, 2),
    "tpu_2_unbatched": tpu_case(unbatched_model_fn, 2),
}


def make_estimator(case: Case, model_dir: str, **more: Any) -> Any:
    params = {"vocabulary": write_vocabulary(os.path.dirname(model_dir))}
    if not case.use_tpu_estimator:
        config = estimator.RunConfig(model_dir=model_dir, tf_random_seed=3)
        return estimator.Estimator(case.model_fn, config=config, params=params, **more)
    arguments = {"use_tpu": False, "export_to_tpu": False, "train_batch_size": 8}
    arguments |= {**case.arguments, **more}
    config = tpu.RunConfig(model_dir=model_dir, tf_random_seed=3)
    return tpu.TPUEstimator(case.model_fn, config=config, params=params, **arguments)
