"""Surroundings of the conformance scenarios: here, their package is a legacy one.

What a scenario takes says how often it runs, as a name each:

- `model_dir` and `record`: once, `module.function`;
- `for_tpu` besides: with either kind of estimator, `function-estimator` and `function-tpu`;
- `side` besides, a `Place`: on a CPU, and with the suffixes `-tpu` and `-tpu2` as TPU code, which
  the original runs on its CPU, and ours on one replica, or two; with `-jax`, `-jax2` and `-jax4` on
  JAX's devices.

Those in `scenarios/reports` run twice, `reports.module.function-v2` and, without TensorFlow 2's
behavior, `-v1`.
"""

import ast
import contextlib
import functools
import importlib
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).parent


class Place(NamedTuple):
    for_tpu: bool
    replicas: int
    runtime: str = "tensorflow"


KINDS: dict[str, dict[str, Any]] = {"-estimator": {"for_tpu": False}, "-tpu": {"for_tpu": True}}
PLACES = {
    "": Place(False, 0),
    "-tpu": Place(True, 1),
    "-tpu2": Place(True, 2),
    "-jax": Place(True, 1, "jax"),
    "-jax2": Place(True, 2, "jax"),
    "-jax4": Place(True, 4, "jax"),
}
VARIANTS: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {
    (): {"": {}},
    ("for_tpu",): KINDS,
    ("side",): {suffix: {"side": place} for suffix, place in PLACES.items()},
}
"""By what a scenario takes besides: the suffixes of its names, and what they give."""

BEHAVIORS = {"-v2": {"v2": True}, "-v1": {"v2": False}}
"""The same of reports: what `scenarios` takes off again."""

# An effect in model_fn happens on every replica, and JAX's runtime refuses it.
NOT_ONES = {
    "host_side.summaries_opened_by_the_model-tpu2",
    *(
        f"host_side.{name}-{place}"
        for name in ("summaries_opened_by_the_model", "data_ends")
        for place in ("jax", "jax2", "jax4")
    ),
    # With TensorFlow 2's behavior, the original's sessions wait for each other's devices for ever.
    *(
        f"reports.distribution.{name}-v2"
        for name in (
            "a_scaffold_of_each_replica",
            "a_keras_model_of_two_replicas",
            "an_evaluation_that_is_not_distributed",
            "an_input_that_is_no_dataset",
            "a_canned_model_of_two_replicas",
        )
    ),
}


@functools.cache
def names() -> dict[str, tuple[str, dict[str, Any]]]:
    """All scenarios, without importing them: `module.function`, and what it is given besides."""
    found = {}
    for path in sorted((HERE / "scenarios").rglob("*.py")):
        module = ".".join(path.relative_to(HERE / "scenarios").with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                taken = tuple(a.arg for a in node.args.args)
                if taken[:2] == ("model_dir", "record") and taken[2:] in VARIANTS:
                    name = f"{module}.{node.name}"
                    reported = module.startswith("reports.")
                    for suffix, given in (BEHAVIORS if reported else VARIANTS[taken[2:]]).items():
                        found[name + suffix] = name, given
    return {name: each for name, each in found.items() if name not in NOT_ONES}


def is_of_strategies(name: str) -> bool:
    """Whether the original, too, needs more than one CPU."""
    return name.startswith("reports.distribution.")


def has_replicas(name: str) -> bool:
    """Whether a scenario needs more than one CPU here, of which a `TPUEstimator` takes all."""
    if is_of_strategies(name):
        return True
    place = names()[name][1].get("side")
    return place is not None and place.replicas > 0


def in_full_run(name: str) -> bool:
    """Whether only the full run has a scenario: on four devices, as two do the same.

    Of each report, either behavior, by turns, is in every run.
    """
    return name.endswith("-jax4") or name in _reports()[1::4] + _reports()[2::4]


@functools.cache
def _reports() -> list[str]:
    return [name for name in names() if name.startswith("reports.")]


def _without_v2(scenario: Callable[..., Any], *args: Any) -> Any:
    importlib.import_module("tensorflow.compat.v1").disable_v2_behavior()
    return scenario(*args)


@contextlib.contextmanager
def scenarios(
    side: str, settings: dict[str, Any], out: pathlib.Path
) -> Iterator[Callable[[str], Callable[..., Any]]]:
    sys.path.insert(0, str(HERE))
    if settings.get("cpus"):
        importlib.import_module("support.simulated_tpu.devices").split_cpu(settings["cpus"])
    if side == "ours":
        importlib.import_module("tpu_estimator_compat").install(["scenarios"])
    else:
        assert importlib.import_module("tensorflow").estimator.Estimator
    judges = side == "original" or settings.get("judges")
    if judges:
        importlib.import_module("support.sides.races").order_summaries()

    def of(name: str) -> Callable[..., Any]:
        path, given = names()[name]
        module, _, function = path.rpartition(".")
        if judges and "side" in given:
            given = {"side": given["side"]._replace(replicas=0, runtime="tensorflow")}
        scenario = getattr(importlib.import_module(f"scenarios.{module}"), function)
        if "v2" in given:
            return scenario if given["v2"] else functools.partial(_without_v2, scenario)
        return functools.partial(scenario, **given)

    yield of
