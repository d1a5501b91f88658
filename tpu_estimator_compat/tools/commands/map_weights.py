"""Copies the variables of a checkpoint into a hand-written Keras model.

    python -m tpu_estimator_compat map-weights runs/1 models.py:make --draft names.json
    python -m tpu_estimator_compat map-weights runs/1 models.py:make --mapping names.json

Without --mapping it writes a draft: a JSON object from names in the checkpoint to paths in the
Keras model, for you to check. With --mapping it copies the variables; with --saved-model and
--inputs it checks that the outputs agree; with --out it saves the weights. The exit status is 0 if
all went well, 1 if the outputs differ or after any other error, 2 if options cannot be parsed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pathlib
from typing import Any

from tpu_estimator_compat.command_path import return_working_directory
from tpu_estimator_compat.tools.reports.sources import say

NAME = "map-weights"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help="a checkpoint, a model_dir, or a SavedModel's directory")
    parser.add_argument(
        "model", help="module:function or file.py:function that returns a built keras.Model"
    )
    parser.add_argument(
        "--draft", metavar="FILE", help="the file for the draft of a mapping; default: print it"
    )
    parser.add_argument("--mapping", metavar="FILE", help="the JSON file with the mapping to use")
    parser.add_argument(
        "--out", metavar="FILE", help="the file for the weights, such as NAME.weights.h5"
    )
    parser.add_argument(
        "--saved-model", metavar="DIR", help="the exported model whose outputs must be the same"
    )
    parser.add_argument(
        "--inputs", metavar="FILE", help="the .npz file with the signature's inputs, by name"
    )
    parser.add_argument(
        "--signature",
        default="serving_default",
        metavar="NAME",
        help="the signature of the exported model; default: serving_default",
    )
    parser.add_argument(
        "--output",
        metavar="NAME",
        help="the signature's output to compare, where the Keras model has only one",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="the largest difference of outputs, relative for values above 1; default: 1e-5",
    )


def run(arguments: argparse.Namespace) -> int:
    return_working_directory()
    _check(arguments)
    # The import takes seconds: errors in the arguments are reported before.
    from tpu_estimator_compat.tools import weight_map

    model = _model(arguments.model)
    try:
        values = weight_map.read_variables(arguments.checkpoint)
        if arguments.mapping is None:
            return _draft(weight_map.propose(values, model), arguments.draft)
        mapping = _mapping(arguments.mapping)
        unused = weight_map.assign(values, model, mapping)
        say(f"Copied {len(mapping)} variables.")
        if unused:
            say(f"Not copied from the checkpoint: {', '.join(unused)}")
        if arguments.saved_model and not _outputs_agree(model, arguments):
            return 1
        if arguments.out:
            model.save_weights(arguments.out)
            say(f"Saved {arguments.out}")
    except weight_map.UNREADABLE as error:
        raise SystemExit(f"{NAME}: {getattr(error, 'message', error)}") from error
    return 0


def _outputs_agree(model: Any, arguments: argparse.Namespace) -> bool:
    import numpy as np

    from tpu_estimator_compat.tools import weight_map

    with np.load(arguments.inputs, allow_pickle=False) as archive:
        inputs = dict(archive)
    differences = weight_map.output_differences(
        arguments.saved_model, model, inputs, arguments.signature, arguments.output
    )
    for name, difference in differences.items():
        say(f"Output {name}: the largest difference is {difference:.3g}")
    if all(difference <= arguments.tolerance for difference in differences.values()):
        return True
    say(f"The outputs differ by more than {arguments.tolerance:g}. Nothing was saved.")
    return False


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.saved_model) != bool(arguments.inputs):
        raise SystemExit("--saved-model and --inputs go together: give both or none.")
    if arguments.mapping is None and (arguments.out or arguments.saved_model):
        raise SystemExit(
            "--out and --saved-model need --mapping. Without it a draft of one is written."
        )
    if arguments.out and not arguments.out.endswith(".weights.h5"):
        raise SystemExit(f"--out must end with .weights.h5. Got {arguments.out}.")
    place, _, function = arguments.model.rpartition(":")
    if not place or not function:
        raise SystemExit(
            f"The model must be module:function or file.py:function. Got {arguments.model}."
        )
    for path in (place if place.endswith(".py") else None, arguments.mapping, arguments.inputs):
        if path is not None and not pathlib.Path(path).is_file():
            raise SystemExit(f"{NAME}: there is no file {path!r} in {os.getcwd()!r}.")
    top = place.partition(".")[0]
    known = top.isidentifier() and importlib.util.find_spec(top) is not None
    if not place.endswith(".py") and not known:
        raise SystemExit(f"{NAME}: there is no module {place!r} to import.")


def _mapping(path: str) -> Any:
    try:
        mapping = json.loads(pathlib.Path(path).read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"--mapping {path} is not JSON: {error}") from None
    if not isinstance(mapping, dict):
        raise ValueError(
            f"--mapping {path} must hold a JSON object, from names in the checkpoint to paths in "
            f"the Keras model. Got {type(mapping).__name__}."
        )
    return mapping


def _draft(mapping: dict[str, str], path: str | None) -> int:
    text = json.dumps(mapping, indent=1)
    if path is None:
        print(text)
    else:
        pathlib.Path(path).write_text(text + "\n")
        say(f"Wrote {len(mapping)} pairs to {path}. Check them before you use them.")
    return 0


def _model(name: str) -> Any:
    place, _, function = name.rpartition(":")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location(pathlib.Path(place).stem, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not place.startswith(error.name):
                raise
            raise SystemExit(f"{NAME}: there is no module {place!r} to import.") from None
    if not callable(make := getattr(module, function, None)):
        raise SystemExit(f"{NAME}: {place} has no function {function!r}.")
    model = make()
    if not hasattr(model, "weights"):
        raise SystemExit(f"{NAME}: {name} must return a keras.Model. Got {model!r}.")
    return model
