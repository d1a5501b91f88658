"""Exports cases of `export_cases.py`, by the original or by this package.

    export_driver.py --side original|ours --models DIR --out DIR [--cases a,b]

A case without a model in DIR/<case> is trained there first, for three steps. Prints the paths of
the SavedModels by case, as JSON.
"""

import argparse
import importlib
import json
import os
import pathlib
import sys
import types
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow.compat.v1 as tf

TRAIN_STEPS = 3


def install_namespace(side: str) -> None:
    module = types.ModuleType("legacy_namespace")
    if side == "original":
        # What scripts reach by the original's own path is asked of the same place.
        inner = importlib.import_module("tensorflow_estimator.python.estimator.tpu.tpu_estimator")
        names = {**vars(tf.estimator.tpu), **{n: getattr(inner, n) for n in INNER}}
        module.tpu = types.SimpleNamespace(**names)
        module.estimator, module.layers = tf.estimator, tf.layers
    else:
        for name in ("tpu", "estimator", "layers"):
            setattr(module, name, importlib.import_module(f"tpu_estimator_compat.{name}"))
    sys.modules["legacy_namespace"] = module


INNER = ("BatchConfig", "inference_on_tpu", "model_fn_inference_on_tpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("original", "ours"), required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--cases")
    args = parser.parse_args()
    install_namespace(args.side)
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
    from engine.export import export_cases

    names = args.cases.split(",") if args.cases else list(export_cases.CASES)
    print(json.dumps({name: export(export_cases, name, args) for name in names}))


def export(cases: Any, name: str, args: argparse.Namespace) -> str:
    case = cases.CASES[name]
    os.makedirs(args.models, exist_ok=True)
    model = cases.make_estimator(case, os.path.join(args.models, name))
    if model.latest_checkpoint() is None:
        model.train(case.input_fn, steps=TRAIN_STEPS)
    path = case.export(model, os.path.join(args.out, name))
    assert isinstance(path, bytes), path
    return path.decode()


if __name__ == "__main__":
    main()
