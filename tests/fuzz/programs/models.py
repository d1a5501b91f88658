"""The model_fn of a program, in the words of an Estimator or a TPUEstimator."""

import tensorflow.compat.v1 as tf
from programs import extras, layers, updates
from programs.hooks import Recording

MODES = tf.estimator.ModeKeys


class Model:
    def __init__(self, choices, record):
        self.choices, self.record = choices, record

    def model_fn(self, features, labels, mode, params):
        choices = self.choices
        self.record("model_fn", mode, sorted(params))
        x = layers.x_of(features)
        prediction = layers.prediction_of(choices, x, mode == MODES.TRAIN)
        if mode == MODES.PREDICT:
            return self._spec(mode, **self._predicting(prediction, x))
        if labels is None:
            labels = tf.reduce_sum(x, 1, keepdims=True)
        loss = tf.identity(layers.loss_of(choices, labels, prediction), "the_loss")
        loss = self._with_nan(loss)
        if mode == MODES.EVAL:
            return self._spec(mode, loss=loss, **self._evaluating(labels, prediction, x))
        return self._training(x, prediction, loss)

    def _with_nan(self, loss):
        if self.choices["nan_at"] == "never":
            return loss
        now = tf.equal(tf.train.get_or_create_global_step(), int(self.choices["nan_at"]))
        return loss + tf.where(now, float("nan"), 0.0)

    def _training(self, x, prediction, loss):
        choices = self.choices
        if choices["start"] == "init_from_checkpoint" and tf.train.latest_checkpoint("first"):
            tf.train.init_from_checkpoint("first", {"/": "/"})
        forward = extras.Forward(x, prediction, loss, self.record, MODES.TRAIN)
        before = [prediction, *extras.all_of(choices, forward)]
        update = updates.train_op(choices, loss, before)
        update = extras.after_update(choices, update)
        more = {"scaffold": self._scaffold()} if choices["scaffold"] != "none" else {}
        if choices["host_call"] != "none":
            more["host_call"] = extras.host_call(choices, forward)
        return self._spec(MODES.TRAIN, loss=loss, train_op=update, **more, **self._hooks())

    def _hooks(self):
        kind = self.choices["spec_hooks"]
        if kind == "none":
            return {}
        if kind == "logging":
            return {"training_hooks": [tf.train.LoggingTensorHook(["the_mean:0"], 2)]}
        hook = Recording(self.record, "of the spec", ["the_loss:0"])
        return {"training_chief_hooks" if kind == "chief" else "training_hooks": [hook]}

    def _scaffold(self):
        kind = self.choices["scaffold"]

        def init_fn(scaffold, session):
            self.record("init_fn", session.run(tf.train.get_global_step()))

        if kind == "saver":
            return self._lazily({"saver": tf.train.Saver(max_to_keep=2)})
        if kind == "init_fn":
            return self._lazily({"init_fn": init_fn})
        if kind == "init_op":
            return self._lazily({"init_op": tf.global_variables_initializer()})
        local = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        return self._lazily({"local_init_op": local})

    def _lazily(self, fields):
        if self.choices["estimator"] == "TPUEstimator":
            return lambda: tf.train.Scaffold(**fields)
        return tf.train.Scaffold(**fields)

    def _predicting(self, prediction, x):
        outputs = {"prediction": prediction}
        if self.choices["outputs"] == "two":
            outputs["squares"] = tf.square(x)
        if self.choices["outputs"] == "classes":
            outputs["classes"] = tf.as_string(tf.cast(prediction > 0, tf.int64))
        export = tf.estimator.export.PredictOutput(outputs)
        return {"predictions": outputs, "export_outputs": {"serving_default": export}}

    def _evaluating(self, labels, prediction, x):
        kind = self.choices["metrics"]
        if kind == "none":
            return {}
        if self.choices["estimator"] == "TPUEstimator":
            return {"eval_metrics": (METRICS[kind], [labels, prediction])}
        return {"eval_metric_ops": METRICS[kind](labels, prediction)}

    def _spec(self, mode, **fields):
        if self.choices["estimator"] == "TPUEstimator":
            fields.pop("training_chief_hooks", None)
            if "scaffold" in fields:
                fields["scaffold_fn"] = fields.pop("scaffold")
            return tf.estimator.tpu.TPUEstimatorSpec(mode, **fields)
        return tf.estimator.EstimatorSpec(mode, **fields)


def _mean(labels, prediction):
    return {"error": tf.metrics.mean_absolute_error(labels, prediction)}


def _several(labels, prediction):
    positive = tf.cast(labels > 0, tf.float32)
    return {
        "accuracy": tf.metrics.accuracy(positive, tf.cast(prediction > 0, tf.float32)),
        "auc": tf.metrics.auc(positive, tf.sigmoid(prediction)),
        "mean": tf.metrics.mean(prediction),
        "rmse": tf.metrics.root_mean_squared_error(labels, prediction),
        "tensor": tf.metrics.mean_tensor(tf.reduce_mean(prediction, 0)),
    }


def _own(labels, prediction):
    total = tf.get_local_variable("total", [], initializer=tf.zeros_initializer())
    update = tf.assign_add(total, tf.reduce_sum(prediction))
    return {"total": (total.read_value(), update), "mean": tf.metrics.mean(labels)}


METRICS = {"mean": _mean, "several": _several, "own": _own}
