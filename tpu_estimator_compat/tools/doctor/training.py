"""The first steps of small models on a device, compared with TensorFlow's on the CPU."""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

CHECK = "training"
_LOOP, _LOOPS = 50, 8

BOUNDS = {"cpu": 1e-4, "gpu": 1e-2, "tpu": 1e-1}
"""The largest relative difference that passes, by platform.

The models differ by 1.2e-5 in float32, by 1.1e-3 if the factors of products are rounded to TF32,
and by 1.2e-2 if they are rounded to bfloat16.
"""

_PRECISIONS = {
    "gpu": "; newer GPUs multiply float32 matrices as TF32 by default",
    "tpu": "; TPUs multiply float32 matrices as bfloat16 by default",
}

RECORDED = {"mlp": 1.488143, "convnet": 1.553927, "encoder": 1.434629}
"""The loss of the last step on the CPU, recorded when the models were written."""

_DEVIATIONS = 5.0  # standard deviations; chance exceeds them once in two million times


def observe(runtime: str, reference: bool) -> dict[str, Any]:
    """Trains the models on this process's devices: a probe, to run in a child process.

    Args:
      runtime: "tensorflow" or "jax".
      reference: whether to run TensorFlow on the CPU, by the rules of `use_tpu=False`.

    Returns:
      `platform`; for each of the `networks` its `losses`, `updates` of variables by name, and
      `seconds` until the first loop has ended; without `reference` also `dropout` and `speed`.
    """
    import tensorflow as tf

    from tpu_estimator_compat.tools.doctor import devices, models

    if reference:
        for kind in ("GPU", "TPU"):
            tf.config.set_visible_devices([], kind)
    platform = devices.platform(runtime)
    # TensorFlow takes all cores of a TPU. Elsewhere one replica trains, and sums are exact.
    shards = None if reference or (runtime, platform) == ("tensorflow", "tpu") else 1
    train = functools.partial(models.train, runtime=runtime, use_tpu=not reference, shards=shards)
    networks = {name: _trained(train, name) for name in models.NETWORKS}
    found: dict[str, Any] = {"platform": platform, "networks": networks}
    if not reference:
        runs = [train(models.dropout, None, {}, seed=seed).last for seed in (1, 1, 2)]
        drawn = [{key: run[key].tolist() for key in ("places", "zeros")} for run in runs]
        found["dropout"] = {
            "rate": models.DROPOUT_RATE,
            "elements": models.STEPS * models.BATCH * models.FEATURES,
            "drawn": drawn,
        }
        found["speed"] = _speed(train)
    return found


def _trained(train: Callable[..., Any], name: str) -> dict[str, Any]:
    from tpu_estimator_compat.tools.doctor import models

    begun = time.perf_counter()
    values = train(models.network, None, {"network": name, "rate": 0.0})
    return {
        "losses": values.last["losses"].tolist(),
        "updates": {
            key: (last.astype("float64") - values.first[key]).ravel().tolist()
            for key, last in values.last.items()
            if key.startswith(f"{name}/")
        },
        "seconds": values.times[0] - begun,
    }


def _speed(train: Callable[..., Any]) -> dict[str, float]:
    """Speed of the encoder in the second half of its loops, and the process's peak memory."""
    import resource

    from tpu_estimator_compat.tools.doctor import models

    params = {"network": "encoder", "rate": models.DROPOUT_RATE}
    looped = train(models.network, None, params, steps=_LOOP * _LOOPS, loop=_LOOP).times
    single = train(models.network, None, params, steps=_LOOP, loop=1).times
    step = _typical_gap(looped) / _LOOP
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "steps_per_second": 1 / step,
        "dispatch": _typical_gap(single) - step,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
    }


def _typical_gap(times: Sequence[float]) -> float:
    late = times[len(times) // 2 :]
    return statistics.median(b - a for a, b in itertools.pairwise(late))


def judge_reference(answer: Mapping[str, Any]) -> list[CheckResult]:
    results = []
    for name, network in answer["networks"].items():
        loss = network["losses"][-1]
        fits = abs(loss - RECORDED[name]) <= BOUNDS["cpu"] * RECORDED[name]
        text = (
            f"{name}, TensorFlow on the CPU, use_tpu=False: loss {loss:.6f}, recorded "
            f"{RECORDED[name]:.6f}, bound {BOUNDS['cpu']:g}"
        )
        results.append(_result(fits, text, "Reinstall TensorFlow and numpy."))
    return results


def judge(side: str, answer: Mapping[str, Any], reference: Mapping[str, Any]) -> list[CheckResult]:
    """Compares the `answer` of `observe` with the reference's, and checks its dropout."""
    platform = answer["platform"]
    bound = BOUNDS.get(platform, BOUNDS["gpu"])
    results = []
    for name, network in answer["networks"].items():
        others = reference["networks"][name]
        loss = difference(network["losses"], others["losses"])
        update, variable = max(
            (difference(network["updates"].get(key, ()), values), key)
            for key, values in others["updates"].items()
        )
        text = (
            f"{name}, {side}: differs from the CPU by {loss:.1e} (loss) and {update:.1e} (update "
            f"of {variable}), bound {bound:g}{_PRECISIONS.get(platform, '')}"
        )
        advice = "Do not train on it. Open an issue with the file that --report writes."
        results.append(_result(max(loss, update) <= bound, text, advice))
    return [*results, _judge_dropout(side, answer["dropout"]), *_figures(side, answer)]


def difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest difference, relative to the largest value of `theirs`; infinite with a NaN."""
    if len(ours) != len(theirs) or any(value != value for value in (*ours, *theirs)):
        return float("inf")
    scale = max(map(abs, theirs), default=0.0) or 1.0
    return max((abs(a - b) for a, b in zip(ours, theirs, strict=True)), default=0.0) / scale


def _judge_dropout(side: str, dropout: Mapping[str, Any]) -> CheckResult:
    """Checks the rate and the effect of seeds: runtimes draw different numbers by design."""
    first, again, other = dropout["drawn"]
    rate, elements = dropout["rate"], dropout["elements"]
    share = sum(first["zeros"]) / elements
    wrong = []
    if not abs(share - rate) <= _DEVIATIONS * (rate * (1 - rate) / elements) ** 0.5:
        wrong.append("the share of zeros is wrong")
    if first != again:
        wrong.append("the same seed draws different numbers")
    if first["places"] == other["places"]:
        wrong.append("different seeds draw the same numbers")
    if len(set(first["places"])) < len(first["places"]):
        wrong.append("two steps draw the same numbers")
    told = "; ".join(wrong) or "seeds repeat and differ as they should"
    text = f"dropout of {rate:g}, {side}: {share:.1%} zeros of {elements}; {told}"
    return _result(not wrong, text, "Do not train with dropout on it. Open an issue.")


def _figures(side: str, answer: Mapping[str, Any]) -> list[CheckResult]:
    speed = answer["speed"]
    starts = ", ".join(f"{n} {v['seconds']:.1f} s" for n, v in answer["networks"].items())
    return [
        CheckResult("figures", Status.FIGURE, f"{side}: first steps, with compilation: {starts}"),
        CheckResult(
            "figures",
            Status.FIGURE,
            f"{side}: encoder {speed['steps_per_second']:.0f} steps/s in loops of {_LOOP}, "
            f"{speed['dispatch'] * 1e3:.2f} ms more for a step alone, peak memory "
            f"{speed['memory'] / 1e9:.1f} GB",
        ),
    ]


def _result(fits: bool, text: str, advice: str) -> CheckResult:
    return CheckResult(CHECK, Status.OK if fits else Status.FAILURE, text, "" if fits else advice)
