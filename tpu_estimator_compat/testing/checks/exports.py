"""`check_exports`: the SavedModel says what `predict` says."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.capture.user_functions import BATCH_SIZE_KEY
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.estimator import export
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks.finding import Finding, close, raise_if_any
from tpu_estimator_compat.testing.devices import of_replicas
from tpu_estimator_compat.testing.results import Arrays
from tpu_estimator_compat.testing.running import PREDICTIONS, of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_FEATURE = "features"
"""The input's name where features are a sole array."""

_SIZES = "take sizes from tf.shape(features) in PREDICT, not from params['batch_size'] or a number"


def check_exports(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Trains a step, exports, and fails unless the loaded SavedModel predicts the same.

    The SavedModel gets all examples at once, and then the first one alone, as a server would.

    Example:
      testing.check_exports(model_fn, {"image": images}, digits)

    Args:
      model_fn, features, labels, params, seed, use_tpu: as for `testing.run`. Features are an array
        or a dict of arrays.
      rtol, atol: relative and absolute difference that counts as rounding.

    Raises:
      AssertionError: no signature has the predictions, or a signature fails on a number of
        examples, or gives other predictions.
      ValueError: features are a tuple.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    subject = Subject(model_fn, features, labels, params, use_tpu, seed)
    if isinstance(subject.features, tuple):
        raise ValueError(
            "features must be an array or a dict of arrays: a SavedModel's inputs have names. Got "
            f"a tuple of {len(subject.features)}."
        )
    with of_replicas(1), tempfile.TemporaryDirectory(prefix="testing_") as folder:
        model_dir = os.path.join(folder, "model")
        of_subject(subject, ModeKeys.TRAIN, model_dir=model_dir)
        predicted = of_subject(subject, ModeKeys.PREDICT, model_dir=model_dir).predictions
        try:
            path = _exported(subject, model_dir, os.path.join(folder, "export"))
        except KeyError as error:
            if error.args != (BATCH_SIZE_KEY,):
                raise
            said = "model_fn asks for params['batch_size'], and an export gives it none."
            raise_if_any("check_exports", [Finding(said, _SIZES)])
        with eager.eager_mode():
            signatures = tf.saved_model.load(path).signatures
            findings = _compared(signatures, _named(subject.features), predicted, rtol, atol)
    raise_if_any("check_exports", findings)


def _named(features: Any) -> Arrays:
    return features if isinstance(features, dict) else {_FEATURE: features}


def _exported(subject: Subject, model_dir: str, folder: str) -> str:
    """The path of a SavedModel of the checkpoint, whose inputs have any number of examples."""
    estimator = subject.estimator(1, model_dir)

    def receiver_fn() -> Any:
        inputs = {
            name: tf.compat.v1.placeholder(value.dtype, [None, *value.shape[1:]], name)
            for name, value in _named(subject.features).items()
        }
        if isinstance(subject.features, dict):
            return export.ServingInputReceiver(inputs, dict(inputs))
        return export.TensorServingInputReceiver(inputs[_FEATURE], dict(inputs))

    return os.fsdecode(estimator.export_saved_model(folder, receiver_fn))


def _compared(
    signatures: Any, features: Arrays, predicted: Arrays, rtol: float, atol: float
) -> list[Finding]:
    found = _of_fixed_size(signatures, predicted)
    for rows in (len(next(iter(features.values()))), 1):
        given = {name: tf.constant(value[:rows]) for name, value in features.items()}
        outputs: dict[str, np.ndarray] = {}
        for name, signature in signatures.items():
            try:
                outputs |= {key: value.numpy() for key, value in signature(**given).items()}
            except tf.errors.OpError as error:
                said = f"Signature {name!r} fails on {rows} example(s): {error.message}"
                found.append(Finding(said, _SIZES))
        wrong = _wrong(outputs, {key: value[:rows] for key, value in predicted.items()}, rtol, atol)
        found += [] if found else [Finding(f"{said} Given {rows} example(s).") for said in wrong]
    return found


def _of_fixed_size(signatures: Any, predicted: Arrays) -> list[Finding]:
    """Findings on outputs whose number of examples is fixed in the graph."""
    found = []
    for name, signature in signatures.items():
        for key, output in signature.structured_outputs.items():
            size = tf.compat.dimension_value(output.shape[0]) if output.shape.rank else None
            if key in predicted and size is not None:
                said = f"Signature {name!r}: {key!r} is of {size} examples, always."
                found.append(Finding(said, _SIZES))
    return found


def _wrong(outputs: Arrays, expected: Arrays, rtol: float, atol: float) -> list[str]:
    """Sentences on predictions that the signatures' outputs do not have."""
    said = []
    for key, value in expected.items():
        names = [key, "output"] if key == PREDICTIONS else [key]
        output = next((outputs[name] for name in names if name in outputs), None)
        if output is None:
            said.append(f"predictions[{key!r}]: no signature has it, but {sorted(outputs)}.")
        elif output.shape != value.shape:
            said.append(
                f"{key!r}: of shape {output.shape} from the SavedModel, {value.shape} from predict."
            )
        elif close(value, output, atol=atol, rtol=rtol):
            continue
        elif value.dtype.kind not in "fc":
            said.append(f"{key!r}: another value from the SavedModel than from predict.")
        else:
            worst = np.max(np.abs(output - value))
            said.append(f"{key!r}: from the SavedModel it differs by up to {worst:g} from predict.")
    return said
