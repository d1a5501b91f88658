"""Canned models: the original's own code here, so one scenario for each of the graphs it builds."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from scenarios import models

fc = tf.feature_column

NUMBERS = np.linspace(-1.0, 1.0, 8, dtype=np.float32)
FEATURES = {
    "a": NUMBERS,
    "b": np.stack([NUMBERS, NUMBERS**2], axis=1),
    "id": np.arange(8) % 4,
    "word": np.array(["x", "y", "z", "x", "y", "other", "x", "z"]),
    "weight": np.array([1, 2, 0.5, 1, 1, 3, 1, 0.25], np.float32),
}
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1])
CLASSES = np.arange(8) % 3
TARGETS = (2 * NUMBERS + 1).astype(np.float32)


def _input_fn(labels, keys=tuple(FEATURES)):
    def input_fn():
        features = {key: FEATURES[key] for key in keys}
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(4).repeat(2).map(_late)

    return input_fn


def _late(features, labels):
    """A batch that comes after what waits for nothing, such as the summary of a bias."""
    with tf.control_dependencies([models.late_zero()]):
        return features, tf.identity(labels)


def _categorical():
    return [
        fc.categorical_column_with_identity("id", 4),
        fc.categorical_column_with_vocabulary_list("word", ["x", "y"], num_oov_buckets=1),
        fc.bucketized_column(fc.numeric_column("a"), [-0.5, 0.5]),
        fc.crossed_column(["word", "id"], 5),
    ]


def _wide():
    return [fc.numeric_column("b", shape=2), *_categorical()]


def _deep():
    id_column, words, buckets, _ = _categorical()
    return [
        fc.numeric_column("a", normalizer_fn=lambda x: x * 2),
        fc.embedding_column(id_column, 2),
        fc.indicator_column(words),
        buckets,
    ]


def _config(model_dir):
    return tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=5, save_summary_steps=1)


@contextlib.contextmanager
def _without_log():
    """For trainings: the original reads the step for its first line while the step changes it."""
    tf.logging.set_verbosity(tf.logging.WARN)
    yield
    tf.logging.set_verbosity(tf.logging.INFO)


def _through(estimator, record, labels, keys=tuple(FEATURES)):
    input_fn = _input_fn(labels, keys)
    with _without_log():
        estimator.train(input_fn, steps=3)
    record(estimator.evaluate(input_fn))
    record(list(estimator.predict(input_fn)))
    for name in estimator.get_variable_names():
        record(name, estimator.get_variable_value(name))


def linear_classifier(model_dir, record):
    estimator = tf.estimator.LinearClassifier(_wide(), config=_config(model_dir))
    _through(estimator, record, LABELS)


def _several_values():
    indices = [[0, 0], [0, 1], [1, 0], [2, 1], [3, 0], [3, 1]]
    ids = tf.SparseTensor(indices, tf.constant([0, 1, 2, 2, 1, 3], tf.int64), [4, 2])
    weights = tf.SparseTensor(indices, [1.0, 2.0, 0.5, 1.0, 1.0, 3.0], [4, 2])
    return {"id": ids, "of_id": weights}, tf.constant(
        [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    )


def _combined(model_dir, record, combiner):
    ids = fc.categorical_column_with_identity("id", 4)
    columns = [fc.weighted_categorical_column(ids, "of_id")]
    estimator = tf.estimator.LinearRegressor(
        columns, model_dir, label_dimension=2, sparse_combiner=combiner, optimizer="SGD"
    )
    with _without_log():
        estimator.train(_several_values, steps=2)
    record(estimator.evaluate(_several_values, steps=1))
    record(estimator.get_variable_value("linear/linear_model/id_weighted_by_of_id/weights"))


def linear_regressor_of_several_values(model_dir, record):
    for combiner in ("sum", "mean", "sqrtn"):
        _combined(f"{model_dir}_{combiner}", record, combiner)


def a_head_of_2_below_a_model_of_1(model_dir, record):
    head = tf.estimator.MultiClassHead(3)
    estimator = tf.estimator.LinearEstimator(head, _wide(), config=_config(model_dir))
    _through(estimator, record, CLASSES)


def dnn_classifier_of_2(model_dir, record):
    estimator = tf2.estimator.DNNClassifier([4, 3], _deep(), config=_config(model_dir))
    _through(estimator, record, LABELS)


def dnn_regressor_with_options(model_dir, record):
    estimator = tf.estimator.DNNRegressor(
        hidden_units=[4, 2],  # with 3, a weight ends near 0, where rounding shows
        feature_columns=_deep(),
        config=_config(model_dir),
        weight_column=fc.numeric_column("weight"),
        optimizer="RMSProp",
        activation_fn=tf.nn.tanh,
        dropout=0.25,
        loss_reduction=tf.losses.Reduction.MEAN,
    )
    _through(estimator, record, TARGETS)


def _shared():
    ids = [fc.categorical_column_with_identity(key, 4) for key in ("id", "other_id")]
    return fc.shared_embedding_columns(ids, 2)


def _two_ids():
    features = {"id": FEATURES["id"], "other_id": (FEATURES["id"] + 1) % 4}
    return tf.data.Dataset.from_tensors((features, LABELS))


def dnn_with_shared_embeddings(model_dir, record):
    with tf.Graph().as_default():  # which tells the function that columns are to be of 1
        columns = _shared()
    estimator = tf.estimator.DNNClassifier([2], columns, config=_config(model_dir))
    with _without_log():
        estimator.train(_two_ids, steps=2)
    record(estimator.get_variable_names(), estimator.evaluate(_two_ids, steps=1))


def wide_and_deep_classifier(model_dir, record):
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        config=_config(model_dir),
        linear_feature_columns=_wide(),
        dnn_feature_columns=_deep(),
        dnn_hidden_units=[4, 3],
        batch_norm=True,
    )
    _through(estimator, record, LABELS)


def wide_or_deep(model_dir, record):
    head = tf.estimator.PoissonRegressionHead()
    wide = tf.estimator.DNNLinearCombinedEstimator(
        head, f"{model_dir}_wide", _wide(), linear_optimizer=tf.train.FtrlOptimizer(0.1)
    )
    _through(wide, record, TARGETS + 2)
    deep = tf.estimator.DNNLinearCombinedRegressor(
        config=_config(f"{model_dir}_deep"), dnn_feature_columns=_deep(), dnn_hidden_units=[2]
    )
    _through(deep, record, TARGETS)


def baselines(model_dir, record):
    classifier = tf.estimator.BaselineClassifier(
        f"{model_dir}_classifier", n_classes=3, weight_column="weight"
    )
    _through(classifier, record, CLASSES, ("a", "weight"))
    _through(tf.estimator.BaselineRegressor(f"{model_dir}_regressor"), record, TARGETS, ("a",))
    head = tf.estimator.LogisticRegressionHead()
    estimator = tf.estimator.BaselineEstimator(head, f"{model_dir}_estimator", optimizer="Adagrad")
    _through(estimator, record, NUMBERS**2, ("a",))


def baseline_of_several_features_of_2(model_dir, record):
    _through(tf2.estimator.BaselineRegressor(model_dir), record, TARGETS)


def _refused(record, make, *arguments, **named):
    try:
        made = make(*arguments, **named)
        with _without_log():
            made.train(_input_fn(LABELS), steps=1)
    except (ValueError, TypeError, KeyError) as error:
        record(type(error).__name__, str(error).split("ValueError: ")[-1].strip())  # without lines


def _refusals(api, model_dir, record):
    estimators = api.estimator
    a = fc.numeric_column("a")
    _refused(record, estimators.LinearClassifier, [a], model_dir, n_classes=1)
    _refused(record, estimators.DNNClassifier, [2], [a], model_dir, n_classes=0)
    _refused(
        record, estimators.LinearClassifier, [a], model_dir, n_classes=3, label_vocabulary="words"
    )
    _refused(record, estimators.LinearRegressor, [a], model_dir, label_dimension=0)
    _refused(record, estimators.LinearRegressor, [a], model_dir, optimizer="Lion")
    _refused(record, estimators.LinearRegressor, [a], model_dir, optimizer=3)
    _refused(record, estimators.DNNRegressor, [2], [a], model_dir, optimizer="Momentum")
    _refused(record, estimators.DNNRegressor, [2], [fc.categorical_column_with_identity("id", 4)])
    _refused(record, estimators.LinearRegressor, ["a"], model_dir)
    _refused(record, estimators.LinearRegressor, [fc.numeric_column("missing")], model_dir)
    _refused(record, estimators.LinearRegressor, [a, a], model_dir)
    _refused(record, estimators.DNNLinearCombinedRegressor, model_dir)
    _refused(record, estimators.DNNLinearCombinedClassifier, model_dir, dnn_feature_columns=[a])


def refusals(model_dir, record):
    for api in (tf, tf2):
        _refusals(api, model_dir, record)
    a = fc.numeric_column("a")
    _refused(record, tf2.estimator.LinearClassifier, [a], model_dir, loss_reduction="all")
    new = tf2.keras.optimizers.Adam()
    _refused(record, tf2.estimator.LinearClassifier, [a], model_dir, optimizer=new)


def _exported(estimator_class, model_dir, record):
    columns = [fc.numeric_column("a"), fc.categorical_column_with_identity("id", 4)]
    estimator = estimator_class(columns, model_dir)
    with _without_log():
        estimator.train(_input_fn(LABELS), steps=2)
    spec = fc.make_parse_example_spec(columns)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(f"{model_dir}/exported", receiver)
    with tf.Graph().as_default(), tf.Session() as session:
        graph = tf.saved_model.load(session, ["serve"], path.decode())
        for name, signature in sorted(graph.signature_def.items()):
            outputs = {key: [o.dtype, str(o.tensor_shape)] for key, o in signature.outputs.items()}
            record(name, signature.method_name, sorted(signature.inputs), outputs)


def exports(model_dir, record):
    _exported(tf.estimator.LinearClassifier, f"{model_dir}/1", record)
    _exported(tf2.estimator.LinearClassifier, f"{model_dir}/2", record)


def warm_starts_of_2(model_dir, record):
    def made(folder, **arguments):
        return tf2.estimator.DNNClassifier([2], _deep(), config=_config(folder), **arguments)

    with _without_log():
        made(f"{model_dir}_first").train(_input_fn(LABELS), steps=2)
    second = made(f"{model_dir}_second", warm_start_from=f"{model_dir}_first")
    with _without_log():
        record(second.train(_input_fn(LABELS), steps=1).evaluate(_input_fn(LABELS)))
    settings = tf.estimator.WarmStartSettings(f"{model_dir}_first", ".*embedding_weights")
    third = made(f"{model_dir}_third", warm_start_from=settings)
    with _without_log():
        record(third.train(_input_fn(LABELS), steps=1).evaluate(_input_fn(LABELS)))


def parsing(model_dir, record):
    for api in (tf, tf2):
        columns, estimators = _wide(), api.estimator
        weighted = {"label_dimension": 2, "weight_column": "weight"}
        for spec in (
            estimators.classifier_parse_example_spec(columns, "y"),
            estimators.regressor_parse_example_spec(columns, "y", **weighted),
        ):
            record(str(sorted(spec.items())))
        for label, weight in (("id", None), ("y", "b"), ("y", columns[-1])):
            try:
                estimators.classifier_parse_example_spec(columns, label, weight_column=weight)
            except ValueError as error:
                record(error)


POINTS = np.array([[0, 0], [1, 0], [10, 10], [11, 10], [0, 1], [9, 11]], np.float32)


def kmeans(model_dir, record):
    estimator = tf.estimator.experimental.KMeans(
        2, model_dir, initial_clusters=POINTS[[0, 3]], use_mini_batch=False, config=_config(None)
    )

    def input_fn():
        return tf.data.Dataset.from_tensors(POINTS).repeat(3)

    with _without_log():
        estimator.train(lambda: input_fn().repeat(), steps=3)  # it counts a step without data
    record(estimator.cluster_centers())
    record(estimator.score(input_fn))
    record(list(estimator.predict_cluster_index(input_fn))[:6])
    record(list(estimator.transform(input_fn))[:6])
    record(estimator.get_variable_names())


def dual_coordinates(model_dir, record):
    """Its kernel takes the examples of a batch in an order of its own: there is one in each.

    No summaries: that of the duality gap is read while the step changes it.
    """
    optimizer = tf2.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=0.1)
    columns = [fc.numeric_column("x"), fc.bucketized_column(fc.numeric_column("x"), [2.0, 4.0])]

    def input_fn():
        features = {"x": np.arange(6, dtype=np.float32), "id": np.arange(6).astype(str)}
        labels = np.array([[0], [0], [0], [1], [1], [1]])
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(1).repeat()

    for number in range(2):  # the second one has dual variables of its own
        config = _config(f"{model_dir}/{number}").replace(save_summary_steps=None)
        estimator = tf2.estimator.LinearClassifier(columns, optimizer=optimizer, config=config)
        estimator.train(input_fn, steps=12)
        record(estimator.evaluate(input_fn, steps=6))
        for name in estimator.get_variable_names():
            record(name, np.shape(estimator.get_variable_value(name)))


def _recurrent(estimator, record):
    def input_fn():
        words = tf.sparse.from_dense(np.arange(1, 13, dtype=np.float32).reshape(4, 3))
        features = {"words": words, "dense": np.zeros(4, np.float32)}
        return tf.data.Dataset.from_tensors((features, np.array([0, 1, 1, 0]))).repeat(3)

    with _without_log():
        estimator.train(input_fn)
    for name in estimator.get_variable_names():
        record(name, np.shape(estimator.get_variable_value(name)))
    record(sorted(estimator.evaluate(input_fn)))
    record(sorted(next(estimator.predict(input_fn))))


def recurrent(model_dir, record):
    columns = [fc.sequence_numeric_column("words")]
    experimental = tf2.estimator.experimental
    for cell in ("simple_rnn", "lstm", "gru"):
        made = experimental.RNNClassifier(
            columns, units=[3], cell_type=cell, model_dir=f"{model_dir}/{cell}"
        )
        _recurrent(made, record)
    head = tf2.estimator.BinaryClassHead()
    folder = f"{model_dir}/below_a_head"
    _recurrent(experimental.RNNEstimator(head, columns, units=[3], model_dir=folder), record)


def signatures(model_dir, record):
    import inspect

    for api in (tf, tf2):
        for model in ("Baseline", "DNN", "DNNLinearCombined", "Linear"):
            for kind in ("Classifier", "Estimator", "Regressor"):
                made = getattr(api.estimator, model + kind)
                for parameter in inspect.signature(made.__init__).parameters.values():
                    default = parameter.default
                    record(model + kind, parameter.name, getattr(default, "__name__", str(default)))
