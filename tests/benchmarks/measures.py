"""Measures: what is taken of each variant, in turns, round by round."""

import dataclasses
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmarks.fleet import Worker, fleet

Samples = dict[str, list[float]]
"""One number per round, by variant."""

_EVERY_SIDE = ["bare", "keras", "keras_jit", "original", "sessions", "ours", "ours_tpu"]
_FOR_MODEL = {
    "small": _EVERY_SIDE,
    "mlp": _EVERY_SIDE,
    "convnet": _EVERY_SIDE,
    "encoder": [*_EVERY_SIDE, "bare_jit", "ours_jit"],
    "tables": ["keras", "original", "sessions", "ours", "ours_tpu"],
}
_CALLS = ["bare", "keras", "original", "sessions", "ours", "ours_tpu"]
_EXPORTS = _SERVED = ["original", "sessions", "ours"]
_SERVED_EXAMPLES = 500
_LISTENING = [
    "bare",
    "bare_host_call",
    "ours",
    "ours_hook",
    "ours_tpu",
    "ours_tpu_hook",
    "ours_host_call",
]
_LISTENING_STEPS = 1000
_LISTENING_PROCESSES = 3
_EVERY_STEP = ["original_every_step", "sessions_every_step", "ours_every_step"]
_BESIDE_BARE = ["bare", "ours", "ours_timer_hook"]
_SLOW_LISTENING = ["ours_slow", "ours_slow_host_call"]
_SLOW_STEPS = 200
_RUNTIMES = ["tensorflow_1", "tensorflow_4", "tensorflow_8", "jax_1", "jax_4", "jax_8"]
_RUNTIME_STEPS = {"small": 400, "mlp": 400, "convnet": 20, "encoder": 20}
_STARTS_AT_MOST = 3
_STARTS = ["bare", "keras", "original", "sessions", "ours"]
_REPLICA_STARTS = ["tensorflow_1", "tensorflow_8"]
_AGAIN = ["original", "sessions", "ours"]
ON_TABLES = ("train", "train_again", "evaluate", "predict", "export")
_BLOCK_STEPS = {"small": 3000, "mlp": 2000, "convnet": 100, "encoder": 100, "tables": 100}
_CALL_EXAMPLES = {"small": 16 * 1000, "mlp": 64 * 400, "convnet": 64 * 200, "encoder": 16 * 200}


@dataclasses.dataclass(frozen=True)
class Plan:
    original: str
    rounds: int
    variants: Sequence[str] | None = None

    def choose(self, sensible: Sequence[str]) -> list[str]:
        return [v for v in sensible if self.variants is None or v in self.variants]


def steps(plan: Plan, model: str) -> dict[str, Samples]:
    """Steps per second in the steady state, and peak memory of the same training.

    A block is several hundred steps or more; two blocks warm up and are not counted.
    """
    rates: Samples = {}
    peaks: Samples = {}
    block = _BLOCK_STEPS[model]
    with fleet(plan.choose(_FOR_MODEL[model]), model, "train", plan.original) as workers:
        for worker in workers:
            worker.answer()
            worker.do(steps=100)
            worker.do(steps=100)
        for turn in range(plan.rounds):
            for worker in _turn(workers, turn):
                done = worker.do(steps=block)
                rates.setdefault(worker.variant, []).append(done["steps"] / done["seconds"])
                peaks.setdefault(worker.variant, [0.0])[0] = done["peak"] / 2**20
    return {"steps": rates, "memory": peaks}


def listening(plan: Plan) -> dict[str, Samples]:
    """Steps per CPU second of the perceptron with nobody, a hook, or a host_call listening.

    The differences are a few percent: by the clock, a machine that does other work hides them, and
    so do the differences between two processes that do the same. There are several of each kind.
    """
    variants = _LISTENING * _LISTENING_PROCESSES
    return {"listening": _blocks(plan, variants, "mlp", _LISTENING_STEPS, "cpu")}


def slow_listening(plan: Plan) -> dict[str, Samples]:
    """Steps per second of steps that sleep, with nobody or a host_call that sleeps as long."""
    return {"slow_listening": _blocks(plan, _SLOW_LISTENING, "mlp", _SLOW_STEPS, "seconds")}


def every_step(plan: Plan, model: str) -> dict[str, Samples]:
    """Steps per second with a hook that has control around every step."""
    variants = _EVERY_STEP * _LISTENING_PROCESSES
    return {"every_step": _blocks(plan, variants, model, _LISTENING_STEPS, "seconds")}


def beside_bare(plan: Plan, model: str) -> dict[str, Samples]:
    """Steps per second of the bare loop, and here, with nobody or a timer hook listening."""
    variants = _BESIDE_BARE * _LISTENING_PROCESSES
    block = _BLOCK_STEPS[model] // 2
    return {"beside_bare": _blocks(plan, variants, model, block, "seconds")}


def _blocks(plan: Plan, variants: Sequence[str], model: str, block: int, clock: str) -> Samples:
    """Steps per unit of `clock`; two blocks warm up and are not counted.

    In them this package finds out which executor is faster, and how long host calls take.
    """
    rates: Samples = {}
    with fleet(plan.choose(variants), model, "train", plan.original) as workers:
        for worker in workers:
            worker.answer()
            worker.do(steps=block)
            worker.do(steps=block)
        for turn in range(plan.rounds):
            for worker in _turn(workers, turn):
                done = worker.do(steps=block)
                rates.setdefault(worker.variant, []).append(done["steps"] / done[clock])
    return rates


def first_step(plan: Plan, model: str) -> dict[str, Samples]:
    """Seconds from making the model to the end of step 1, imports apart, in fresh processes.

    The processor's seconds as well: those by the clock say little on a machine that does other
    work.
    """
    seconds: Samples = {}
    cpu: Samples = {}
    imports: Samples = {}
    variants = _STARTS + (_REPLICA_STARTS if model.startswith("encoder") else [])
    for _ in range(plan.rounds):
        for variant in plan.choose(variants):
            with fleet([variant], model, "train", plan.original, loop=1) as workers:
                answer = workers[0].answer()
                seconds.setdefault(variant, []).append(answer["seconds"])
                cpu.setdefault(variant, []).append(answer["cpu"])
                imports.setdefault(variant, []).append(workers[0].imports)
    return {"first_step": seconds, "first_step_cpu": cpu, "imports": imports}


def again(plan: Plan, model: str) -> dict[str, Samples]:
    """CPU seconds of a call of one step that follows another like it, in fresh processes."""
    found: dict[str, Samples] = {}
    for _ in range(plan.rounds):
        for variant in plan.choose(_AGAIN):
            with fleet([variant], model, "again", plan.original, loop=1) as [worker]:
                for task in ("train", "evaluate", "predict"):
                    for what in (f"{task}_anew", f"{task}_again"):
                        cost = worker.do(call=task)["cpu"]
                        found.setdefault(what, {}).setdefault(variant, []).append(cost)
    return found


def large_tables(plan: Plan, model: str) -> dict[str, Samples]:
    """CPU seconds of calls on a large table, and the peak of memory so far, imports apart.

    Calls follow one another in one process: train, train again, evaluate, predict, export.
    """
    found: dict[str, Samples] = {}
    for _ in range(plan.rounds):
        for variant in plan.choose(_AGAIN):
            with fleet([variant], model, "again", plan.original, loop=1) as [worker]:
                for call in ON_TABLES:
                    done = worker.do(call=call.removesuffix("_again"))
                    peak = (done["peak"] - worker.baseline) / 2**20
                    for what, value in (("cpu", done["cpu"]), ("memory", peak)):
                        samples = found.setdefault(f"large_{call}_{what}", {})
                        samples.setdefault(variant, []).append(value)
    return found


def runtimes(plan: Plan, model: str) -> dict[str, Samples]:
    """TensorFlow's replicas and JAX's devices, on one machine's CPU.

    Steps per second; seconds to the end of step 1 with empty caches, and with those that the start
    before has filled.
    """
    variants = plan.choose(_RUNTIMES)
    rates = _blocks(plan, variants, model, _RUNTIME_STEPS[model], "seconds")
    first: Samples = {}
    second: Samples = {}
    for _ in range(min(plan.rounds, _STARTS_AT_MOST)):
        for variant in variants:
            with tempfile.TemporaryDirectory() as cache:
                for seconds in first, second:
                    with fleet([variant], model, "train", plan.original, 1, cache) as [worker]:
                        seconds.setdefault(variant, []).append(worker.answer()["seconds"])
    return {"runtime_steps": rates, "runtime_first_step": first, "runtime_second_start": second}


def calls(plan: Plan, model: str, task: str) -> dict[str, Samples]:
    """Examples per second of whole calls, and of what follows a call's first piece."""
    whole: Samples = {}
    steady: Samples = {}
    examples = _CALL_EXAMPLES[model]
    with fleet(plan.choose(_CALLS), model, task, plan.original) as workers:
        for worker in workers:
            worker.do(examples=examples)
        for turn in range(plan.rounds):
            for worker in _turn(workers, turn):
                done = worker.do(examples=examples)
                whole.setdefault(worker.variant, []).append(examples / done["seconds"])
                if 0 < done["first"] < examples:
                    rate = (examples - done["first"]) / (done["seconds"] - done["seconds_to_first"])
                    steady.setdefault(worker.variant, []).append(rate)
    return {task: whole, f"{task}_steady": steady}


def served(plan: Plan, model: str) -> dict[str, Samples]:
    """Microseconds of an example, where `predict` is kept open and fed one at a time."""
    found: Samples = {}
    with fleet(plan.choose(_SERVED), model, "served", plan.original) as workers:
        for worker in workers:
            worker.do(examples=_SERVED_EXAMPLES)
        for turn in range(plan.rounds):
            for worker in _turn(workers, turn):
                seconds = worker.do(examples=_SERVED_EXAMPLES)["seconds"]
                found.setdefault(worker.variant, []).append(1e6 * seconds / _SERVED_EXAMPLES)
    return {"served": found}


def exports(plan: Plan, model: str) -> dict[str, Samples]:
    seconds: Samples = {}
    sizes: Samples = {}
    with fleet(plan.choose(_EXPORTS), model, "export", plan.original) as workers:
        for worker in workers:
            worker.do(exports=1)
        for turn in range(plan.rounds):
            for worker in _turn(workers, turn):
                done = worker.do(exports=1)
                seconds.setdefault(worker.variant, []).append(done["seconds"])
                sizes.setdefault(worker.variant, []).append(done["size"] / 2**10)
    return {"export": seconds, "export_size": sizes}


def growth(plan: Plan, model: str, blocks: int, block: int) -> dict[str, Any]:
    """One long training here: rate, cost and resident memory of each block.

    Returns:
      Lists `rate` (steps per second), `cpu` (seconds of a step) and `resident` (bytes), one value a
      block.
    """
    with fleet(["ours"], model, "train", plan.original) as workers:
        workers[0].answer()
        workers[0].do(steps=1000)
        done = [workers[0].do(steps=block) for _ in range(blocks)]
    return {
        "rate": [d["steps"] / d["seconds"] for d in done],
        "cpu": [d["cpu"] / d["steps"] for d in done],
        "resident": [d["resident"] for d in done],
    }


def _turn(workers: list[Worker], turn: int) -> list[Worker]:
    """Every other round backwards, so that nobody always follows the same neighbour."""
    return workers if turn % 2 == 0 else workers[::-1]
