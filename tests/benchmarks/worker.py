"""Worker: the process in which one side runs one model; talks JSON lines with the driver.

    worker.py --side bare|keras|original|ours --model NAME --task TASK

It reports its imports first, then answers each command: `{"steps": n}` for a block of training
steps, `{"examples": n}` for one call of evaluate or predict, `{"exports": 1}` for one export,
`{"call": task}` for one call as short as can be.
"""

import argparse
import importlib
import os
import pathlib
import sys
import time

_STARTED = time.perf_counter()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path[0] = str(pathlib.Path(__file__).parent.parent)

from benchmarks import sides  # noqa: E402
from benchmarks.gate import Channel, Gate  # noqa: E402

TASKS = ("train", "evaluate", "predict", "served", "export", "again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--loop", type=int, default=100)
    parser.add_argument("--use-tpu", action="store_true")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--runtime", default="tensorflow")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--listen", default="", choices=sides.LISTENERS)
    args = parser.parse_args()
    channel = Channel()
    module = "estimators" if args.side in ("original", "ours") else args.side
    side = importlib.import_module(f"benchmarks.sides.{module}")
    if module == "estimators":
        side.choose(args.side)
    from benchmarks import models

    if args.replicas > 1:
        from support.simulated_tpu.devices import split_cpu

        split_cpu(args.replicas)
    imported = time.perf_counter() - _STARTED
    model = models.load(args.model)
    channel.send(imports=imported)
    settings = sides.Settings(
        args.loop, args.use_tpu, args.jit, args.model_dir, args.listen, args.runtime
    )
    if args.task == "train":
        side.train(model, Gate(channel), settings)
        return
    call = getattr(side, args.task)(model, settings)
    while args.task == "export":
        channel.receive()
        seconds, size = call()
        channel.send(seconds=seconds, size=size)
    while args.task == "again":
        cost = call(channel.receive()["call"])
        channel.send(seconds=cost.seconds, cpu=cost.cpu)
    while True:
        examples = channel.receive()["examples"]
        timing = call(examples)
        channel.send(
            examples=examples,
            seconds=timing.seconds,
            first=timing.first,
            seconds_to_first=timing.seconds_to_first,
        )


if __name__ == "__main__":
    main()
