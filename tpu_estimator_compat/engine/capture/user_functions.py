"""Calls a user's model_fn or input_fn with exactly the arguments that it declares."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config.arguments import check_callable, check_input_fn
from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.spec import EstimatorSpec, TPUEstimatorSpec

# The original's function: it finds the same arguments of wrappers and partials.
from tpu_estimator_compat.tf_internals import function_utils

_MODEL_FN_ARGUMENTS = frozenset({"features", "labels", "mode", "params", "self", "config"})
BATCH_SIZE_KEY = "batch_size"
USE_TPU_KEY = "use_tpu"
CONTEXT_KEY = "context"
RESERVED_PARAMS_KEYS = (BATCH_SIZE_KEY, CONTEXT_KEY)


def check_model_fn(model_fn: Callable[..., Any] | None, params: Any) -> Callable[..., Any]:
    """Returns model_fn; refuses one whose arguments do not fit."""
    if model_fn is None:
        raise ValueError("model_fn must be provided to Estimator.")
    check_callable(model_fn, "model_fn", "Give a function of features, labels, mode and params.")
    declared = set(function_utils.fn_args(model_fn))
    if "features" not in declared:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in declared:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is "
            "passed to Estimator."
        )
    if params is None and "params" in declared:
        logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to "
            "Estimator.",
            model_fn,
        )
    if unknown := sorted(declared - _MODEL_FN_ARGUMENTS):
        raise ValueError(
            f"model_fn ({model_fn}) has following not expected args: {unknown}. It may take "
            "features, labels, mode, params and config."
        )
    return model_fn


def declared_arguments(function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    declared = function_utils.fn_args(function)
    return {name: value for name, value in offered.items() if name in declared}


def input_arguments(input_fn: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `offered` that an input_fn declares; raises TypeError if it needs others."""
    check_input_fn(input_fn)
    arguments = declared_arguments(input_fn, offered)
    try:
        inspect.signature(input_fn).bind(**arguments)
    except ValueError:  # some callables have no signature to look at
        pass
    except TypeError as error:
        raise TypeError(
            f"input_fn ({input_fn}) cannot be called: {error}. It may take {', '.join(offered)}; "
            "bind others with functools.partial."
        ) from None
    return arguments


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Logs the original Estimator's lines before and after a call of model_fn."""
    logging.info("Calling model_fn.")
    yield
    logging.info("Done calling model_fn.")


def check_takes_labels(model_fn: Callable[..., Any], labels: Any) -> None:
    if labels is not None and not declared_arguments(model_fn, {"labels": labels}):
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, offered: dict[str, Any]
) -> Any:
    """Calls model_fn with the arguments of `offered` that it declares."""
    check_takes_labels(model_fn, labels)
    kwargs = declared_arguments(model_fn, {"labels": labels, **offered})
    explained = graph_building.foreign_tensors_explained("model_fn")
    with explained, graph_building.keras_backend_explained():
        return model_fn(features=features, **kwargs)


def checked_spec(spec: Any) -> Any:
    """`spec`; raises ValueError if it is not an EstimatorSpec or TPUEstimatorSpec."""
    if not isinstance(spec, (EstimatorSpec, TPUEstimatorSpec)):
        raise ValueError(
            "model_fn should return an EstimatorSpec. Got "
            f"{type(spec).__name__}: {spec!r}. Return EstimatorSpec or TPUEstimatorSpec."
        )
    return spec


def set_param(params: Any, key: str, value: Any) -> None:
    """Sets an entry of a params dict, or of an HParams-like object."""
    if hasattr(params, "set_hparam"):
        if key in params:
            params.set_hparam(key, value)
        else:
            params.add_hparam(key, value)
    else:
        params[key] = value
