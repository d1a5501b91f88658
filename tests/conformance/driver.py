"""Conformance driver: runs scenarios one after another in one process and notes what came of each.

A script for a process of its own, under either interpreter:

    driver.py --side original|ours --out OUT_DIR --limit SECONDS NAME...

A NAME is `module.function` below `scenarios`. OUT_DIR gets a `NAME.json` for each when it is done,
and `current`, the name of the one at work. A scenario that takes longer than the limit ends the
process with status 1, after the stacks of its threads are in `OUT_DIR/NAME.stacks`. The process
also ends after a scenario that left an open graph behind: the names without a file are left to do.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import importlib
import json
import os
import pathlib
import random
import shutil
import tempfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import observing
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops


def scenario_of(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"scenarios.{module}"), function)


def fresh_state() -> None:
    """What a new process would have: a graph, seeds, writers, the level of logging."""
    tf.reset_default_graph()
    tf.summary.FileWriterCache.clear()
    tf.logging.set_verbosity(tf.logging.INFO)
    random.seed(0)
    np.random.seed(0)
    gc.collect()
    gc.freeze()  # what the first scenarios have imported and cached


def leaves_traces() -> bool:
    """Whether the last scenario left a graph open, so that the next one needs another process."""
    gc.collect()  # closes generators that were given up
    return not tf.executing_eagerly() or not ops._default_graph_stack.is_cleared()


def run(name: str, out: pathlib.Path, limit: float) -> dict[str, Any]:
    """One scenario's observations."""
    fresh_state()
    home = tempfile.mkdtemp(prefix="conformance_")
    model_dir = os.path.join(home, "model")
    environment, folder = dict(os.environ), os.getcwd()
    os.chdir(home)
    with (out / f"{name}.stacks").open("w") as stacks:
        faulthandler.dump_traceback_later(limit, exit=True, file=stacks)
        try:
            return observing.observe(scenario_of(name), home, model_dir)
        finally:
            faulthandler.cancel_dump_traceback_later()
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("original", "ours"), required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--limit", required=True, type=float)
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    if args.side == "ours":
        importlib.import_module("tpu_estimator_compat").install(["scenarios"])
        importlib.import_module("tpu_estimator_compat.tpu")  # once, in no scenario's time
    else:
        assert tf.estimator.Estimator
    gc.collect()
    gc.freeze()  # collections, of which each scenario has two, need not look at what is imported
    for name in args.names:
        (args.out / "current").write_text(name)
        observed = run(name, args.out, args.limit)
        unfinished = args.out / f"{name}.unfinished"
        unfinished.write_text(json.dumps(observed, indent=1))
        unfinished.rename(args.out / f"{name}.json")
        (args.out / f"{name}.stacks").unlink()
        (args.out / "current").unlink()
        if leaves_traces():
            return


if __name__ == "__main__":
    main()
