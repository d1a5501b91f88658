"""Runs the training step that is saved in this folder on the first device that JAX finds.

    python run_step.py

The script needs only JAX, NumPy and flatbuffers. It compares two steps with those of the CPU of the
machine that saved the step, and measures time and memory. It prints the figures, and writes them to
`result.json`, each as soon as it is known. The exit status is 1 if the step, with products in
float32, differs from the CPU by more than `BOUND`.

Some variables depend on rounding errors: the gradient of a key's bias in an attention layer is
zero, and Adam divides one rounding error by another. So the folder also has the change of each
variable if the first values have a relative error of `NUDGE`. From the variable's difference the
script subtracts ten times that change. A variable that changes by a tenth or more is not compared.
"""

import argparse
import json
import pathlib
import statistics
import time

import jax
import numpy as np
from jax import export

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 2
KEY = 1234567
BOUND = 1e-3
NUDGE = 1e-6  # relative; about the rounding error of a sum of float32 products
ALLOWED = 10  # times the change that a nudge makes
SAMPLES = 1000  # the most elements of a variable that are compared


class Step:
    """The step of a folder, with first values of the variables, and inputs of `STEPS` steps.

    The files: `step.json` describes the step; `values.npz` has the values that cannot be drawn;
    `one.highest`, `one.default` and `loop.default` are functions of one step and of a loop of
    steps, as `jax.export.deserialize` reads them, with products in float32 or in the chip's own
    precision.
    """

    def __init__(self, folder):
        self._folder = folder
        about = json.loads((folder / "step.json").read_text())
        self._loss, self._loop = about["loss"], about["loop"]
        saved = np.load(folder / "values.npz")
        values = dict(saved) | {name: drawn(**how) for name, how in about["drawn"].items()}
        self.first = {name: values[name] for name in about["variables"]}
        self.feeds = [values[name] for name in about["feeds"]]

    def compiled(self, name, device):
        function = export.deserialize(bytearray((self._folder / name).read_bytes()))
        here = jax.sharding.SingleDeviceSharding(device)
        jitted = jax.jit(function.call, in_shardings=here, donate_argnums=0)
        avals = jax.tree.unflatten(function.in_tree, function.in_avals)[0]
        shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), avals)
        return jitted.lower(*shapes).compile()

    def ran(self, function, device, first=None):
        """The losses of `STEPS` steps; and elements of each variable before and after them."""
        first = first or self.first
        variables = jax.device_put(list(first.values()), device)
        losses = []
        for i in range(STEPS):
            feeds = [feed[i : i + 1] for feed in self.feeds]
            variables, _, fetches = function(variables, feeds, _numbers(1, i))
            losses.append(float(np.mean(np.asarray(fetches[self._loss], np.float64))))
        return losses, dict(zip(first, map(sampled, variables), strict=True))

    def seconds_per_step(self, device, seconds):
        """Median seconds of a step, in loops of the runtime's length."""
        loop, function = self._loop, self.compiled("loop.default", device)
        feeds = [np.resize(feed, (loop, *feed.shape[1:])) for feed in self.feeds]
        variables, feeds = jax.device_put([[*self.first.values()], feeds], device)
        times, position, begun = [], 0, time.perf_counter()
        while len(times) < 4 or time.perf_counter() - begun < seconds:
            last = time.perf_counter()
            variables, made, _ = function(variables, feeds, _numbers(loop, position))
            made = int(made)  # waits for the device
            times.append((time.perf_counter() - last) / max(made, 1))
            position += loop
            if made < loop:
                print(f"The loss became NaN after {position - loop + made} steps: no further ones.")
                break
        return statistics.median(times[1:] or times)


def _numbers(steps, position):
    return np.asarray([steps, KEY, position], np.int64)


def drawn(shape, dtype, mean, deviation, seed):
    """Numbers of a mean and a standard deviation, which may be 0."""
    numbers = np.random.RandomState(seed).standard_normal(shape) if deviation else np.zeros(shape)
    return (numbers * deviation + mean).astype(dtype)


def nudged(value):
    """The value with a relative error of `NUDGE`, up or down by chance, if of floats."""
    if value.dtype.kind != "f":
        return value
    signs = np.random.RandomState(1).randint(0, 2, value.shape) * 2 - 1
    return (value * (1 + NUDGE * signs)).astype(value.dtype)


def sampled(value):
    flat = np.asarray(value, np.float64).ravel()
    return flat[:: max(1, -(-flat.size // SAMPLES))]


def difference(ours, theirs):
    """The largest difference, relative to the largest value of `theirs`; infinite with a NaN."""
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.abs(ours - theirs).max(initial=0.0) / (np.abs(theirs).max(initial=0.0) or 1.0))


def reference(step):
    """The results on this machine's CPU; the last are the changes that rounding errors make."""
    cpu = jax.devices("cpu")[0]
    function = step.compiled("one.highest", cpu)
    losses, after = step.ran(function, cpu)
    first = {name: nudged(value) for name, value in step.first.items()}
    _, others = step.ran(function, cpu, first)
    noise = {name: difference(others[name], value) for name, value in after.items()}
    after = {name: value.tolist() for name, value in after.items()}
    return {"losses": losses, "after": after, "noise": noise}


def compared(found, of_cpu):
    """The largest relative differences: of losses, and of variables beyond rounding."""
    losses, after = found
    beyond = {}
    for name, theirs in of_cpu["after"].items():
        allowed = ALLOWED * of_cpu["noise"][name]
        beyond[name] = max(0.0, difference(after[name], theirs) - allowed) if allowed < 1 else 0.0
    worst = max(beyond, key=beyond.get)
    loss = difference(losses, of_cpu["losses"])
    return {"loss": loss, "variables": beyond[worst], "worst": worst}


def measured(folder, seconds):
    """The entries of the result, in the order of their worth: a time limit may end the script."""
    device, step = jax.devices()[0], Step(folder)
    print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}", flush=True)
    estimates = json.loads((folder / "estimates.json").read_text())
    yield {"device": device.device_kind, "jax": jax.__version__, "estimates": estimates}
    of_cpu = json.loads((folder / "reference.json").read_text())
    noisy = sum(value > BOUND for value in of_cpu["noise"].values())
    yield {"noisy_variables": noisy, "variables": len(of_cpu["noise"])}
    begun = time.perf_counter()
    function = step.compiled("one.default", device)
    yield {"compile_seconds": time.perf_counter() - begun}
    yield {"default": compared(step.ran(function, device), of_cpu)}
    seconds = step.seconds_per_step(device, seconds)
    peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
    yield {"seconds_per_step": seconds, "steps_per_second": 1 / seconds, "peak_bytes": peak}
    exact = step.ran(step.compiled("one.highest", device), device)
    yield {"highest": compared(exact, of_cpu)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="to measure speed for")
    parser.add_argument("--result", default=str(HERE / "result.json"), help="file to write")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    result = {}
    for found in measured(HERE, arguments.seconds):
        print(json.dumps(found), flush=True)
        result |= found
        pathlib.Path(arguments.result).write_text(json.dumps(result, indent=1))
    if max(result["highest"]["loss"], result["highest"]["variables"]) <= BOUND:
        return 0
    print(f"FAILURE: the step differs by more than {BOUND:g}. Do not train here.")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
