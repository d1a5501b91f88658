"""`check_same_as_original`: TensorFlow 2.15's own estimator does the same."""

from __future__ import annotations

import ast
import inspect
import os
import pathlib
import pprint
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.testing.devices import check_count
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.compare import comparing, environment, runs
from tpu_estimator_compat.tools.compare.showing import shown

_SCRIPT = """\
import numpy as np
import tensorflow.compat.v1 as tf
import {module} as tested

import tpu_estimator_compat as tpu

arrays = np.load({arrays!r})
features = {features}
labels = {labels}
params = {params}


def input_fn(params, mode):
    whole = labels is not None and mode != "infer"
    dataset = tf.data.Dataset.from_tensor_slices((features, labels) if whole else features)
    dataset = dataset.batch({size}, drop_remainder=True)
    return dataset if mode == "infer" else dataset.repeat()


def model_fn(features, labels, mode, params, config):
    offered = {{"labels": labels, "mode": mode, "params": params, "config": config}}
    return tested.{name}(features, **{{key: offered[key] for key in {declared}}})


config = tpu.RunConfig(model_dir="model", tf_random_seed={seed}, save_checkpoints_steps={steps})
estimator = tpu.TPUEstimator(
    model_fn,
    config=config,
    params=params,
    use_tpu=False,
    train_batch_size={size},
    eval_batch_size={size},
    predict_batch_size={size},
)
estimator.train(input_fn, max_steps={steps})
estimator.evaluate(input_fn, steps=1)
for prediction in estimator.predict(input_fn):
    pass
"""


def check_same_as_original(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    steps: int = 5,
    seed: int = SEED,
    time_limit: float = 600,
) -> None:
    """Trains, evaluates and predicts with TensorFlow 2.15 and here, and fails where they differ.

    The original runs in an environment of its own, which is made once and takes minutes and a
    gigabyte; a check takes a minute or so. Where it cannot be made, sessions of this TensorFlow run
    the original's loops. `python -m tpu_estimator_compat compare` has more options.

    Example:
      testing.check_same_as_original(model.model_fn, images, digits, {"width": 8})

    Args:
      model_fn: a function of a module that needs no other packages than TensorFlow, NumPy and this
        one; not of the test's own module, as that imports pytest.
      features, labels, seed: as for `testing.run`.
      params: a dict of plain values: numbers, text, lists, dicts.
      steps: training steps.
      time_limit: seconds that one run may take.

    Raises:
      AssertionError: losses, variables, metrics or predictions differ by more than rounding, or a
        side fails; the report of `compare`, which says who makes a difference.
      ValueError: model_fn is no function of a module, or `params` are no plain values.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    check_count(steps, "steps")
    subject = Subject(model_fn, features, labels, params, False, seed)
    with child_process.temporary_folder("testing_") as folder:
        (folder / "script.py").write_text(_script(subject, folder, steps))
        graphs = not tf.compat.v1.executing_eagerly_outside_functions()
        script = runs.Script(str(folder / "script.py"), behavior="v1" if graphs else "v2")
        # The function's module is legacy code there, as for `run`.
        path = [_home(model_fn)[1], *filter(None, [os.environ.get("PYTHONPATH")])]
        variables = {"PYTHONPATH": os.pathsep.join(path)}
        runner = runs.Runner(script, folder / "runs", steps, time_limit, environment=variables)
        try:
            python: Any = environment.find_or_make(environment.RELEASES["2.15"])
        except environment.Unavailable as error:
            python = error
        report = comparing.with_original(runner, python).without_folders()
    if report.verdict.exit_code:
        raise AssertionError(f"check_same_as_original: {report.summary}\n{shown(report).text()}")


def _script(subject: Subject, folder: pathlib.Path, steps: int) -> str:
    """The text of a script for both sides; arrays go into a file of `folder`."""
    module, _ = _home(subject.model_fn)
    arrays: dict[str, np.ndarray] = {}
    described = [_described(value, arrays) for value in (subject.features, subject.labels)]
    file = folder / "arrays.npz"
    np.savez(file, **arrays)  # type: ignore[arg-type]
    declared = [n for n in inspect.signature(subject.model_fn).parameters if n != "features"]
    return _SCRIPT.format(
        module=module,
        name=subject.model_fn.__name__,
        arrays=str(file),
        features=described[0],
        labels=described[1],
        params=_literal(subject.params or {}),
        declared=declared,
        size=subject.batch_size,
        seed=subject.seed,
        steps=steps,
    )


def _home(model_fn: Callable[..., Any]) -> tuple[str, str]:
    """The module of a function, and the folder from which it is imported."""
    name, module = getattr(model_fn, "__qualname__", "<"), inspect.getmodule(model_fn)
    file = getattr(module, "__file__", None)
    imported = getattr(module, name, None) is model_fn and model_fn.__module__ != "__main__"
    if module is None or file is None or not imported:
        raise ValueError(
            f"model_fn ({model_fn}) must be a function at the top of a module, which the "
            "original's environment can import: none of a script, notebook or function. Move it "
            "there, and give in `params` what it depends on."
        )
    parts = module.__name__.split(".")
    up = len(parts) - (0 if pathlib.Path(file).name == "__init__.py" else 1)
    return module.__name__, str(pathlib.Path(file).resolve().parents[up])


def _described(value: Any, arrays: dict[str, np.ndarray]) -> str:
    """An expression for a structure of arrays, which are added to `arrays`."""
    if value is None:
        return "None"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_described(v, arrays)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_described(v, arrays)}, " for v in value) + ")"
    name = f"array_{len(arrays)}"
    arrays[name] = np.asarray(value)
    return f"arrays[{name!r}]"


def _literal(params: Any) -> str:
    text = pprint.pformat(params)
    try:
        same = ast.literal_eval(text) == params
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ValueError(
            "params must be plain values, which a script can name: numbers, text, lists, dicts. "
            f"Got {params!r}."
        )
    return textwrap.indent(text, "    ").lstrip()
