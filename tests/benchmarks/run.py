"""Command: runs the benchmarks and prints ratios with their targets.

    python tests/benchmarks/run.py --models mlp,encoder --what steps,predict --rounds 9

Every variant of a model is a process of its own; they take turns, block by block. What counts is
the ratio of neighbours in a round; times alone depend on the machine and are never judged.
"""

import argparse
import json
import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).parent.parent)

from support import original

from benchmarks import input_modes, large_model, legacy_package, measures, report

# "encoder_12", "encoder_24" and "encoder_48", deeper encoders, are for first_step and again.
MODELS = ("small", "mlp", "convnet", "encoder", "tables", "dense", "sparse")
LARGE_TABLES = ("dense", "sparse")
TRAINED_ONLY = ("tables",)
EXPORTED = ("encoder",)  # the only one that takes features by name, as receivers give them
WHAT = (
    "steps",
    "memory",
    "listening",
    "every_step",
    "beside_bare",
    "first_step",
    "again",
    "large_tables",
    "runtimes",
    "evaluate",
    "predict",
    "served",
    "export",
    "growth",
    "large",
    "input",
    "package",
)


def measure(plan: measures.Plan, model: str, what: list[str]) -> dict[str, measures.Samples]:
    found: dict[str, measures.Samples] = {}

    def add(samples: dict[str, measures.Samples]) -> None:
        for name, values in samples.items():
            found[name] = values
            print(report.table(model, name, values) + "\n", flush=True)

    if model in LARGE_TABLES:
        if "large_tables" in what:
            add(measures.large_tables(plan, model))
        return found
    if "steps" in what or "memory" in what:
        add(measures.steps(plan, model))
    if model in TRAINED_ONLY:
        return found
    if "every_step" in what:
        add(measures.every_step(plan, model))
    if "beside_bare" in what:
        add(measures.beside_bare(plan, model))
    if "first_step" in what:
        add(measures.first_step(plan, model))
    if "again" in what:
        add(measures.again(plan, model))
    if "runtimes" in what:
        add(measures.runtimes(plan, model))
    for task in ("evaluate", "predict"):
        if task in what:
            add(measures.calls(plan, model, task))
    if "served" in what:
        add(measures.served(plan, model))
    if "export" in what and model in EXPORTED:
        add(measures.exports(plan, model))
    return found


def growth(plan: measures.Plan) -> dict[str, Any]:
    """Three long blocks of the perceptron: neither slower nor bigger at the end."""
    found = measures.growth(plan, "mlp", 3, 10000)
    rates, resident = found["rate"], [r / 2**20 for r in found["resident"]]
    print("growth: three blocks of 10000 steps of the perceptron")
    print("  steps/s      " + "  ".join(f"{r:10.0f}" for r in rates))
    print("  resident MiB " + "  ".join(f"{r:10.1f}" for r in resident))
    print(
        "    last/first:"
        f" rate {rates[-1] / rates[0]:.3f}, memory {resident[-1] / resident[0]:.4f}\n"
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--what", default=",".join(WHAT), help="of " + ",".join(WHAT))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--variants", help="only these, for example bare,ours")
    parser.add_argument("--json", help="file for all samples")
    args = parser.parse_args()
    what = args.what.split(",")
    variants = args.variants.split(",") if args.variants else None
    plan = measures.Plan(original.find_or_make(), args.rounds, variants)
    found: dict[str, Any] = {}
    if set(what) - {"growth", "large", "input", "listening", "package"}:
        found = {model: measure(plan, model, what) for model in args.models.split(",")}
    if "growth" in what:
        found["growth"] = growth(plan)
    if "listening" in what:
        found["listening"] = {**measures.listening(plan), **measures.slow_listening(plan)}
        for name, samples in found["listening"].items():
            print(report.table("mlp", name, samples) + "\n", flush=True)
    if "large" in what:
        found["large"] = large_model.run(gib=2.0)
        print(large_model.text(found["large"]))
    if "input" in what:
        for replicas in (1, 2):
            samples = input_modes.run(args.rounds, replicas)
            found[f"input_{replicas}"] = samples
            print(input_modes.text(samples, replicas) + "\n")
    if "package" in what:
        found["package"] = legacy_package.run(args.rounds)
        for name, samples in found["package"].items():
            print(report.table("legacy", name, samples) + "\n", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
