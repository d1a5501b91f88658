"""Runs the training step that is saved in this folder on the first device that JAX finds.

    python run_step.py

The script needs only JAX, NumPy and flatbuffers. It compares the step's results with those of the
CPU of the machine that saved the step, or of this machine if the step draws random numbers. It
measures time and memory, prints the figures, and writes them to `result.json`, each as soon as it
is known. The exit status is 1 if the step, with products in float32, differs from the CPU by more
than `--bound`.

Some variables depend on rounding errors: the gradient of a key's bias in an attention layer is
zero, and Adam divides one rounding error by another. So the script also knows how much each
variable changes if the initial values have a relative error of 1e-6. From the variable's difference
it subtracts ten times that change. A variable that changes by a tenth or more is not compared.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax import export

HERE = pathlib.Path(__file__).resolve().parent
KEY = 1234567
BOUND = 1e-3
NUDGE = 1e-6  # relative; about the rounding error of a sum of float32 products
ALLOWED = 10  # times the change that a nudge makes
CONFIG: Any = jax.config
CLEAR: Any = jax.clear_caches
SHAPE: Any = jax.ShapeDtypeStruct


class Step:
    def __init__(self) -> None:
        self.about = json.loads((HERE / "step.json").read_text())
        self.values = np.load(HERE / "values.npz")
        self.device = jax.devices()[0]
        self.noise: dict[str, float] = self.about["noise"]
        self._compiled: dict[Any, Any] = {}
        self.feeds = [self.value("feed", i) for i in range(len(self.about["feeds"]))]

    def value(self, kind: str, i: int) -> Any:
        given = self.about[f"{kind}s"][i]
        if given["saved"]:
            return typed(self.values[f"{kind}{i}"], given["dtype"])
        return described(given)

    @functools.cached_property
    def first(self) -> list[Any]:
        """First values of the variables, on the host."""
        return [self.value("variable", i) for i in range(len(self.about["variables"]))]

    def variables(self, device: Any = None, *, nudge: bool = False) -> list[Any]:
        first = [nudged(value) for value in self.first] if nudge else self.first
        placed: list[Any] = jax.device_put(first, device or self.device)
        return placed

    def compiled(self, name: str, device: Any = None) -> Any:
        if (name, device) not in self._compiled:
            self._compiled[name, device] = self.compile(name, device)
        return self._compiled[name, device]

    def compile(self, name: str, device: Any = None) -> Any:
        function = export.deserialize(bytearray((HERE / name).read_bytes()))
        here = jax.sharding.SingleDeviceSharding(device or self.device)
        jitted = jax.jit(function.call, in_shardings=here, donate_argnums=0)
        avals = jax.tree.unflatten(function.in_tree, function.in_avals)[0]
        shapes = jax.tree.map(lambda a: SHAPE(a.shape, a.dtype), avals)
        return jitted.lower(*shapes).compile()

    def numbers(self, steps: int, position: int) -> Any:
        return np.asarray([steps, KEY, position], np.int64)

    def ran(
        self, name: str, device: Any = None, *, nudge: bool = False
    ) -> tuple[list[float], list[Any]]:
        """Losses of the compared steps, and elements of the variables after them."""
        function = self.compiled(name, device)
        variables = self.variables(device, nudge=nudge)
        losses = []
        for i in range(len(self.feeds[0])):
            feeds = [feed[i : i + 1] for feed in self.feeds]
            variables, _, fetches = function(variables, feeds, self.numbers(1, i))
            losses.append(float(np.mean(np.asarray(fetches[self.about["loss"]], np.float64))))
        return losses, [self.sampled(value) for value in variables]

    def reference_here(self) -> tuple[list[float], list[Any]]:
        """The reference of a step with random numbers, which TensorFlow draws differently."""
        cpu = jax.devices("cpu")[0]
        found = self.ran("one.highest", cpu)
        nudged = self.ran("one.highest", cpu, nudge=True)
        names = self.about["names"]
        after = [dict(zip(names, values, strict=True)) for values in (found[1], nudged[1])]
        self.noise = noise(*after)
        return found

    def reference(self) -> tuple[list[float], list[Any]]:
        after = [self.values.get(f"after{i}") for i in range(len(self.about["names"]))]
        return self.about["losses"], after

    def sampled(self, value: Any) -> Any:
        flat = np.asarray(value, np.float64).ravel()
        return flat[:: max(1, -(-flat.size // self.about["samples"]))]

    def compared(self, found: Any, reference: Any) -> dict[str, Any]:
        """The largest relative differences: of losses, of variables beyond rounding, of updates."""
        first = [self.sampled(value) for value in self.first]
        values, updates = {}, {}
        for name, before, ours, theirs in zip(
            self.about["names"], first, found[1], reference[1], strict=True
        ):
            if theirs is None:
                continue
            allowed = ALLOWED * self.noise[name]
            values[name] = max(0.0, difference(ours, theirs) - allowed) if allowed < 1 else 0.0
            if self.noise[name] < BOUND:
                updates[name] = difference(ours - before, theirs - before)
        worst = max(values, key=lambda name: values[name])
        return {
            "loss": difference(found[0], reference[0]),
            "variables": values[worst],
            "worst": worst,
            "updates": max(updates.values(), default=None),
        }

    def seconds_per_step(self, seconds: float) -> float:
        """Median seconds of a step, in loops of the runtime's length."""
        loop = self.about["loop"]
        function = self.compiled("loop.default")
        feeds = [np.resize(feed, (loop, *feed.shape[1:])) for feed in self.feeds]
        feeds = jax.device_put(feeds, self.device)
        variables, position = self.variables(), 0
        times: list[float] = []
        begun = time.perf_counter()
        while len(times) < 4 or time.perf_counter() - begun < seconds:
            last = time.perf_counter()
            variables, made, _ = function(variables, feeds, self.numbers(loop, position))
            made = int(made)  # waits for the device
            times.append((time.perf_counter() - last) / max(made, 1))
            position += loop
            if made < loop:
                print(f"The loss became NaN after {position - loop + made} steps: no further ones.")
                break
        return statistics.median(times[1:] or times)


def described(given: Any) -> Any:
    """A value that is not saved: a constant, or numbers that are drawn."""
    if given["deviation"]:
        drawn = np.random.RandomState(given["seed"]).standard_normal(given["shape"])
        value = drawn * given["deviation"] + given["mean"]
    else:
        value = np.full(given["shape"], given["mean"])
    return value.astype(jax.numpy.dtype(given["dtype"]))


def typed(array: Any, dtype: str) -> Any:
    return array.view(jax.numpy.dtype(dtype)) if dtype == "bfloat16" else array


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference, relative to the largest value of `theirs`; infinite with a NaN."""
    ours, theirs = (np.asarray(value, np.float64).ravel() for value in (ours, theirs))
    if ours.shape != theirs.shape or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    return float(np.abs(ours - theirs).max(initial=0.0) / (np.abs(theirs).max(initial=0.0) or 1.0))


def nudged(value: Any) -> Any:
    """The value with a relative error of `NUDGE`, up or down by chance, if float16, 32 or 64."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    signs = np.random.RandomState(1).randint(0, 2, array.shape) * 2 - 1
    return (array * (1 + NUDGE * signs)).astype(array.dtype)


def noise(after: Any, of_nudged: Any) -> dict[str, float]:
    """By variable, the relative change that a rounding error in the first values makes."""
    return {name: difference(of_nudged[name], after[name]) for name in after}


def compile_seconds(step: Step, folder: str) -> dict[str, float]:
    """Seconds to compile a step where the cache `folder` is empty, and to load it from there."""
    CONFIG.update("jax_compilation_cache_dir", folder)
    found = {}
    for name in ("without", "with"):
        CLEAR()
        begun = time.perf_counter()
        step.compile("one.default")
        found[name] = time.perf_counter() - begun
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="to measure speed for")
    parser.add_argument("--bound", type=float, default=BOUND, help="largest difference")
    parser.add_argument("--result", default=str(HERE / "result.json"), help="file to write")
    arguments = parser.parse_args()
    CONFIG.update("jax_enable_x64", True)
    CONFIG.update("jax_persistent_cache_min_compile_time_secs", 0)
    CONFIG.update("jax_persistent_cache_min_entry_size_bytes", -1)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        for found in measured(Step(), arguments.seconds, cache):
            result |= found
            pathlib.Path(arguments.result).write_text(json.dumps(result, indent=1))
    report(result)
    if max(result["highest"]["loss"], result["highest"]["variables"]) <= arguments.bound:
        return 0
    print(f"FAILURE: the step differs by more than {arguments.bound:g}. Do not train here.")
    return 1


def measured(step: Step, seconds: float, cache: str) -> Iterator[dict[str, Any]]:
    """The entries of the result, in the order of their worth: a time limit may end the script."""
    device = step.device
    print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}", flush=True)
    yield {
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "estimates": step.about["estimates"],
    }
    yield {"compile_seconds": compile_seconds(step, cache)}
    draws = step.about["draws"]
    reference = step.reference_here() if draws else step.reference()
    yield {
        "reference": "JAX on the CPU" if draws else "TensorFlow on the CPU",
        "noisy_variables": sum(value > BOUND for value in step.noise.values()),
        "variables": len(step.noise),
    }
    yield {"default": step.compared(step.ran("one.default"), reference)}
    seconds_per_step = step.seconds_per_step(seconds)
    yield {
        "seconds_per_step": seconds_per_step,
        "steps_per_second": 1 / seconds_per_step,
        "steps_of_loop": step.about["loop"],
        "peak_bytes": (device.memory_stats() or {}).get("peak_bytes_in_use"),
    }
    yield {"highest": step.compared(step.ran("one.highest"), reference)}


def report(result: dict[str, Any]) -> None:
    for name, precision in (("float32", "highest"), ("default precision", "default")):
        found = result[precision]
        updates = "unknown" if found["updates"] is None else f"{found['updates']:.1e}"
        print(
            f"products in {name}: differs from {result['reference']} by {found['loss']:.1e} "
            f"(losses), {found['variables']:.1e} (variables, beyond rounding; most in "
            f"{found['worst']}) and {updates} (updates of variables)"
        )
    if number := result["noisy_variables"]:
        print(
            f"{number} of {result['variables']} variables change by more than {BOUND} where the "
            f"first values change by {NUDGE}: they are compared less exactly"
        )
    print(
        f"{result['seconds_per_step'] * 1e3:.3f} ms a step, {result['steps_per_second']:.1f} steps "
        f"per second, in loops of {result['steps_of_loop']}"
    )
    seconds = result["compile_seconds"]
    print(f"compiled in {seconds['without']:.1f} s; from a cache in {seconds['with']:.1f} s")
    peak = result["peak_bytes"]
    told = "unknown" if peak is None else f"{peak / 2**20:.1f} MiB"
    print(f"peak memory: {told}")
    for topology, size in result["estimates"].items():
        print(f"preflight expected {size / 2**20:.1f} MiB for {topology}")


if __name__ == "__main__":
    raise SystemExit(main())
