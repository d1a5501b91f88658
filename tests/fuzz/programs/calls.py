"""Runs a program: makes its estimator, and calls it."""

import itertools
import os

import numpy as np
import tensorflow.compat.v1 as tf
from programs import hooks
from programs.choices import consistent
from programs.inputs import WIDTH, Input
from programs.models import Model

BOUND = 4  # elements that are asked of an endless input


def run(given, model_dir, record):
    choices = consistent(given)
    record("choices", choices)
    if choices["v2"] == "off":
        tf.disable_v2_behavior()
    program = Program(choices, model_dir, record)
    for number in range(4):
        program.call(number, choices[f"call{number}"])
    record("values", program.values())


def _number(text):
    return None if text == "none" else int(text)


class Program:
    def __init__(self, choices, model_dir, record):
        self.choices, self.model_dir, self.record = choices, model_dir, record
        self.estimator = None
        self._warm()
        self._anew()

    def call(self, number, kind):
        if kind == "none":
            return
        self.record("call", number, kind)
        try:
            getattr(self, f"_{kind}")(number)
        except Exception as error:
            self.record("raised", error)
            if self.choices["hook_raise"] == "none" and self.choices["nan_at"] == "never":
                import traceback

                traceback.print_exc()

    def values(self):
        try:
            names = self.estimator.get_variable_names()
        except ValueError as error:
            return error
        return {name: self.estimator.get_variable_value(name) for name in sorted(names)}

    def _warm(self):
        if self.choices["start"] == "nothing":
            return
        self.record("before")
        self._anew(folder="first")
        given = self._input()
        self.estimator.train(self._input_fn(given), hooks=given.hooks, steps=2)

    def _anew(self, folder=None):
        choices = self.choices
        folder = folder or self.model_dir
        model = Model(choices, self.record)
        more = {}
        if choices["start"] in ("warm", "warm_some") and folder != "first":
            names = ".*" if choices["start"] == "warm" else ".*(kernel|w|table)"
            more["warm_start_from"] = tf.estimator.WarmStartSettings(
                os.path.abspath("first"), names
            )
        if choices["estimator"] == "Estimator":
            config = tf.estimator.RunConfig(model_dir=folder, **self._config())
            self.estimator = tf.estimator.Estimator(
                model.model_fn, config=config, params={}, **more
            )
            return
        tpu = tf.estimator.tpu
        of_tpu = tpu.TPUConfig(iterations_per_loop=int(choices["iterations"]))
        config = tpu.RunConfig(model_dir=folder, tpu_config=of_tpu, **self._config())
        size = int(choices["batch"])
        sizes = {f"{each}_batch_size": size for each in ("train", "eval", "predict")}
        self.estimator = tpu.TPUEstimator(
            model.model_fn, config=config, use_tpu=False, params={}, **sizes, **more
        )

    def _config(self):
        choices = self.choices
        config = {
            "save_summary_steps": _number(choices["save_summary_steps"]),
            "keep_checkpoint_max": _number(choices["keep_checkpoint_max"]),
            "log_step_count_steps": _number(choices["log_step_count_steps"]),
            "tf_random_seed": _number(choices["seed"]),
        }
        if choices["save_checkpoints"] == "secs":
            config["save_checkpoints_secs"] = 600
        else:
            config["save_checkpoints_steps"] = _number(choices["save_checkpoints"])
        return config

    def _input(self):
        return Input(self.choices)

    def _input_fn(self, given):
        """The kind of function that the estimator calls."""
        if self.choices["estimator"] == "TPUEstimator":
            return given.input_fn_of_params
        return given.input_fn

    def _training(self):
        given = self._input()
        return {
            "input_fn": self._input_fn(given),
            "hooks": [
                *given.hooks,
                *hooks.of_training(self.choices, self.record, self.model_dir),
                *self._hooks_of_the_estimator(),
            ],
            "saving_listeners": self._listeners(),
        }

    def _listeners(self):
        kind, then = self.choices["listeners"], None
        if kind == "evaluates":
            then = self._look
        if self.choices["hook_raise"] == "stop_saving":
            kind, then = "raises", lambda: next(iter(()))
        stop_at = 3 if kind == "stops" else None
        return None if kind == "no" else [hooks.Listener(self.record, "listener", stop_at, then)]

    def _look(self):
        """Evaluates the newest checkpoint, while a training runs."""
        if self.choices["hook_looks"] == "latest":
            self.record("newest", self.estimator.latest_checkpoint())
            return
        given = self._input()
        found = self.estimator.evaluate(self._input_fn(given), 1, given.hooks, name="meanwhile")
        self.record("meanwhile", found)

    def _hooks_of_the_estimator(self):
        """Hooks that are made of the estimator."""
        early, found = tf.estimator.experimental, []
        if self.choices["hook_early"] == "higher":
            found.append(
                early.stop_if_higher_hook(
                    self.estimator, "loss", 0.01, run_every_secs=None, run_every_steps=2
                )
            )
        if self.choices["hook_early"] == "no_decrease":
            found.append(
                early.stop_if_no_decrease_hook(
                    self.estimator, "loss", 1, run_every_secs=None, run_every_steps=2
                )
            )
        if self.choices["hook_looks"] != "no":
            found.append(hooks.Looking(self._look))
        if self.choices["hook_memory"] == "yes":
            given = self._input()
            found.append(
                early.InMemoryEvaluatorHook(
                    self.estimator, self._input_fn(given), given.hooks, steps=1, every_n_iter=2
                )
            )
        return found

    def _steps(self, number):
        return int(self.choices[f"steps{number}" if number < 3 else "steps2"])

    def _train(self, number):
        self.estimator.train(steps=self._steps(number), **self._training())

    def _train_anew(self, number):
        self._anew()
        self.estimator.train(steps=self._steps(number), **self._training())

    def _train_to(self, number):
        self.estimator.train(max_steps=3 * number + self._steps(number), **self._training())

    def _train_all(self, number):
        steps = BOUND if self._input().endless else None
        self.estimator.train(steps=steps, **self._training())

    def _evaluate(self, number, **more):
        given = self._input()
        tpu = self.choices["estimator"] == "TPUEstimator"
        steps = more.pop("steps", self._steps(number) if number else 2)
        steps = 2 if steps is None and (given.endless or tpu) else steps
        found = self.estimator.evaluate(
            self._input_fn(given),
            steps=steps,
            hooks=[*given.hooks, *self._evaluation_hooks()],
            **more,
        )
        self.record("evaluated", found)

    def _evaluate_all(self, number):
        self._evaluate(number, steps=None)

    def _evaluate_named(self, number):
        self._evaluate(number, name="other")

    def _evaluate_checkpoint(self, number):
        state = tf.train.get_checkpoint_state(self.model_dir)
        first = state.all_model_checkpoint_paths[0] if state else None
        self._evaluate(number, checkpoint_path=first)

    def _evaluation_hooks(self):
        kind = self.choices["eval_hooks"]
        if kind == "recording":
            return [hooks.Recording(self.record, "evaluating", ["the_loss:0", "prediction:0"])]
        if kind == "summary":
            return [hooks.OwnSummary(1, output_dir=f"{self.model_dir}/seen", summary_op=tf.no_op)]
        if kind == "final":
            return [hooks.Finals(self.record)]
        return [hooks.Stopping(self.record, 1)] if kind == "stop" else []

    def _predict(self, number, **more):
        given = self._input()
        more["hooks"] = [*given.hooks, *self._prediction_hooks()]
        predictions = self.estimator.predict(self._input_fn(given), **more)
        found = list(itertools.islice(predictions, BOUND) if given.endless else predictions)
        predictions.close()
        self.record("predicted", found)

    def _predict_keys(self, number):
        self._predict(number, predict_keys=["prediction"])

    def _predict_whole(self, number):
        self._predict(number, yield_single_examples=False)

    def _prediction_hooks(self):
        kind = self.choices["predict_hooks"]
        if kind == "recording":
            return [hooks.Recording(self.record, "predicting", ["prediction:0"])]
        if kind == "logging":
            return [tf.train.LoggingTensorHook(["the_mean:0"], every_n_iter=1)]
        return []

    def _receiver(self):
        if self.choices["receiver"] == "raw":
            x = tf.placeholder(tf.float32, [None, WIDTH], name="served")
            return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})
        if self.choices["receiver"] == "tensor":
            x = tf.placeholder(tf.float32, [None, WIDTH], name="served")
            return tf.estimator.export.TensorServingInputReceiver(x, x)
        texts = tf.placeholder(tf.string, [None], name="examples")
        x = tf.parse_example(texts, {"x": tf.FixedLenFeature([WIDTH], tf.float32)})
        return tf.estimator.export.ServingInputReceiver(x, texts)

    def _export(self, number):
        folder = self.estimator.export_saved_model(f"export{number}", self._receiver)
        self.record("exported", type(folder).__name__, *self._served(folder))

    def _served(self, folder):
        x = np.arange(2 * WIDTH, dtype=np.float32).reshape(2, WIDTH) / 10
        if self.choices["receiver"] == "parsing":
            values = [tf.train.Feature(float_list=tf.train.FloatList(value=row)) for row in x]
            x = [
                tf.train.Example(features=tf.train.Features(feature={"x": v})).SerializeToString()
                for v in values
            ]
        with tf.Graph().as_default(), tf.Session() as session:
            loaded = tf.saved_model.loader.load(session, ["serve"], folder.decode())
            signature = loaded.signature_def["serving_default"]
            [given] = signature.inputs.values()
            fetches = {name: info.name for name, info in signature.outputs.items()}
            return sorted(loaded.signature_def), session.run(fetches, {given.name: x})

    def _exporters(self):
        kind, estimator = self.choices["exporter"], tf.estimator
        made = {
            "final": lambda: estimator.FinalExporter("final", self._receiver),
            "latest": lambda: estimator.LatestExporter("latest", self._receiver, exports_to_keep=1),
            "best": lambda: estimator.BestExporter("best", self._receiver),
        }
        if kind == "several":
            return [each() for each in made.values()]
        return made[kind]() if kind in made else None

    def _train_and_evaluate(self, number):
        training, given = self._training(), self._input()
        limit = 3 * number + self._steps(number)
        train_spec = tf.estimator.TrainSpec(
            training["input_fn"], limit, training["hooks"], training["saving_listeners"]
        )
        eval_spec = tf.estimator.EvalSpec(
            self._input_fn(given),
            steps=2,
            hooks=[*given.hooks, *self._evaluation_hooks()],
            exporters=self._exporters(),
            throttle_secs=0,
        )
        found = tf.estimator.train_and_evaluate(self.estimator, train_spec, eval_spec)
        self.record("trained and evaluated", found)

    def _values(self, number):
        self.record("values", self.values(), self.estimator.latest_checkpoint() is not None)
