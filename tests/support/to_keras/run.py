"""Trains a program, as its author's script would: `run.py mlp --model_dir=m dropout=0.1`."""

import argparse
import ast
import importlib

import tensorflow as tf


def make(program, model_dir, changed, every=100):
    """The program's estimator and input_fn; `changed` are params, a dict."""
    module = importlib.import_module("programs." + program)
    config = tf.estimator.RunConfig(model_dir, tf_random_seed=1, save_summary_steps=every)
    params = {**module.PARAMS, **changed}
    if hasattr(module, "make_estimator"):
        return module.make_estimator(model_dir, params, config), module.input_fn
    return tf.estimator.Estimator(module.model_fn, config=config, params=params), module.input_fn


def parsed(words):
    """Params of words such as `units=3` or `cell=gru`."""
    found = {}
    for name, _, value in (word.partition("=") for word in words):
        try:
            found[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            found[name] = value
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("changed", nargs="*")
    parser.add_argument("--model_dir")
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_intermixed_args()
    estimator, input_fn = make(given.program, given.model_dir, parsed(given.changed))
    estimator.train(input_fn, max_steps=given.steps)
    print("loss", estimator.evaluate(input_fn, steps=2)["loss"])
