import os

import tensorflow.compat.v1 as tf
from scenarios import models


def _receiver_fn():
    x = tf.placeholder(tf.float32, [None], name="served")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def _signatures(path, tags=("serve",)):
    path = path.decode() if isinstance(path, bytes) else path
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, list(tags), path)
        return {
            name: [s.method_name, sorted(s.inputs), sorted(s.outputs)]
            for name, s in loaded.signature_def.items()
        }


def _exported(path):
    """Files of an export by name, then it is removed: its size is no behaviour."""
    folder = path.decode()
    found = sorted(
        os.path.relpath(os.path.join(root, name), folder)
        for root, _, names in os.walk(folder)
        for name in names
    )
    tf.gfile.DeleteRecursively(os.path.dirname(folder))
    return found


def files_of_an_export(model_dir, record):
    path = models.trained(model_dir).export_saved_model("exports", _receiver_fn)
    record(type(path).__name__, _signatures(path))
    return _exported(path)


def an_export_as_text(model_dir, record):
    path = models.trained(model_dir).export_saved_model("exports", _receiver_fn, as_text=True)
    return _exported(path)


def an_export_with_assets(model_dir, record):
    with open("words.txt", "w") as file:
        file.write("words")
    path = models.trained(model_dir).export_saved_model(
        "exports", _receiver_fn, assets_extra={"below/words.txt": "words.txt"}
    )
    return _exported(path)


def an_export_without_a_checkpoint(model_dir, record):
    models.estimator(model_dir).export_saved_model("exports", _receiver_fn)


def an_export_without_a_receiver(model_dir, record):
    models.trained(model_dir).export_saved_model("exports", None)


def an_export_of_a_given_checkpoint(model_dir, record):
    estimator = models.trained(model_dir, steps=4, save_checkpoints_steps=2)
    path = estimator.export_saved_model(
        "exports", _receiver_fn, checkpoint_path=model_dir + "/model.ckpt-2"
    )
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], path.decode())
        record(session.run(tf.global_variables()[0]))
    return _exported(path)


def several_signatures(model_dir, record):
    def more(spec):
        export = tf.estimator.export
        doubled = spec.predictions["doubled"]
        scores = tf.stack([doubled, -doubled], 1)
        classes = tf.as_string(tf.argmax(scores, 1))
        outputs = {
            "serving_default": export.PredictOutput({"a": doubled}),
            "single": export.PredictOutput(doubled),
            "classify": export.ClassificationOutput(scores=scores, classes=classes),
            "regress": export.RegressionOutput(doubled),
        }
        return {"export_outputs": outputs}

    estimator = models.trained(model_dir, 1, models.spec_of(prediction=more))

    def receiver_fn():
        serialized = tf.placeholder(tf.string, [None], name="examples")
        x = tf.parse_example(serialized, {"x": tf.FixedLenFeature([], tf.float32)})
        return tf.estimator.export.ServingInputReceiver(x, serialized)

    path = estimator.export_saved_model("exports", receiver_fn)
    record(_signatures(path))
    return _exported(path)


def a_single_output_of_another_name(model_dir, record):
    """A single export output is the default, too."""

    def more(spec):
        output = tf.estimator.export.PredictOutput(spec.predictions)
        return {"export_outputs": {"other": output}}

    estimator = models.trained(model_dir, 1, models.spec_of(prediction=more))
    path = estimator.export_saved_model("exports", _receiver_fn)
    record(_signatures(path))
    return _exported(path)


def several_outputs_without_a_default(model_dir, record):
    def more(spec):
        output = tf.estimator.export.PredictOutput(spec.predictions)
        return {"export_outputs": {"a": output, "b": output}}

    estimator = models.trained(model_dir, 1, models.spec_of(prediction=more))
    estimator.export_saved_model("exports", _receiver_fn)


def raw_serving_receiver(model_dir, record):
    with tf.Graph().as_default():
        features = {"x": tf.placeholder(tf.float32, [None], name="x")}
        fn = tf.estimator.export.build_raw_serving_input_receiver_fn(features)
    path = models.trained(model_dir).export_saved_model("exports", fn)
    record(_signatures(path))
    return _exported(path)


def parsing_serving_receiver(model_dir, record):
    columns = {"x": tf.FixedLenFeature([], tf.float32)}
    fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(columns)
    path = models.trained(model_dir).export_saved_model("exports", fn)
    record(_signatures(path))
    return _exported(path)


def receiver_alternatives(model_dir, record):
    def fn():
        x = tf.placeholder(tf.float32, [None])
        half = x / 2
        receiver = tf.estimator.export.ServingInputReceiver
        return receiver({"x": half}, {"raw": x}, {"halved": {"half": half}})

    path = models.trained(model_dir).export_saved_model("exports", fn)
    record(_signatures(path))
    return _exported(path)


def an_export_of_predictions_only(model_dir, record):
    estimator = models.trained(model_dir)
    path = estimator.export_saved_model("exports", _receiver_fn)
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], path.decode())
        signature = loaded.signature_def["serving_default"]
        out = signature.outputs["doubled"]
        record(out.name, session.run(out.name, {signature.inputs["x"].name: [1.0, 2.0]}))
    return _exported(path)


def an_export_for_training(model_dir, record):
    def supervised():
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        make = tf.estimator.experimental.build_raw_supervised_input_receiver_fn
        return make({"x": x}, y, None)()

    estimator = models.trained(model_dir)
    path = estimator.experimental_export_all_saved_models(
        "exports", {"train": supervised, "eval": supervised, "infer": _receiver_fn}
    )
    for tags in (["train"], ["eval"], ["serve"]):
        record(tags, _signatures(path, tags))
    return _exported(path)


def two_exports(model_dir, record):
    """Each export has a directory of its own, named by the second."""
    estimator = models.trained(model_dir)
    paths = [estimator.export_saved_model("exports", _receiver_fn) for _ in range(2)]
    record(paths[0] != paths[1], [p.decode().rsplit("/", 1)[-1].isdigit() for p in paths])
    return _exported(paths[0])


def the_old_export_savedmodel(model_dir, record):
    path = models.trained(model_dir).export_savedmodel(
        "exports", _receiver_fn, strip_default_attrs=True
    )
    record(type(path).__name__)
    return _exported(path)


def a_tensor_receiver(model_dir, record):
    def model_fn(features, labels, mode):
        if mode == "infer":
            record("features", type(features).__name__)
            predictions = models.weight() * features
            return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        return models.model_fn(features, labels, mode)

    def fn():
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.TensorServingInputReceiver(x, x)

    estimator = models.trained(model_dir, 1, model_fn)
    path = estimator.export_saved_model("exports", fn)
    record(_signatures(path))
    return _exported(path)


def an_export_of_a_tpu_estimator(model_dir, record):
    estimator = models.tpu_estimator(model_dir, export_to_tpu=False)
    estimator.train(models.tpu_batches(), steps=1)
    path = estimator.export_saved_model("exports", _receiver_fn)
    record(_signatures(path))
    return _exported(path)


def an_export_with_assets_of_the_graph(model_dir, record):
    with open("vocabulary.txt", "w") as file:
        file.write("a\nb\n")

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        if mode != "infer":
            return spec
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                os.path.abspath("vocabulary.txt"),
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )
        found = table.lookup(tf.constant(["b"]))
        return spec._replace(
            predictions={"found": found},
            export_outputs={"serving_default": tf.estimator.export.PredictOutput({"found": found})},
        )

    estimator = models.trained(model_dir, 1, model_fn)
    path = estimator.export_saved_model("exports", _receiver_fn)
    record(_signatures(path))
    return _exported(path)


def an_export_that_fails(model_dir, record):
    def model_fn(features, labels, mode):
        if mode == "infer":
            raise KeyError("no prediction")
        return models.model_fn(features, labels, mode)

    estimator = models.trained(model_dir, 1, model_fn)
    estimator.export_saved_model("exports", _receiver_fn)
