"""Runs scenarios of a suite one after another in one process, and notes what came of each.

A script for a process of its own, under either interpreter: `python -m support.sides.driver`. It
reads from stdin, as JSON:

  suite: a folder of the tests, and its `settings`.
  side: "original" or "ours".
  names: scenarios.
  out: the folder of the answers.
  process: which of several processes it is that have the same names; each takes the next that none
    has taken, by making `NAME.taken`.
  limit: seconds that a scenario may take.
  largest: values that a variable may have, to be noted with all of them.
  keeps_homes: whether a scenario's files stay, in `NAME.home`.

`out` gets a `NAME.json` for each when it is done. A scenario that takes longer than the limit ends
the process with status 1, after the stacks of its threads are in `NAME.stacks`. The process also
ends after a scenario that left an open graph behind: the names that are not taken are left to do.
"""

import faulthandler
import gc
import importlib
import json
import os
import pathlib
import random
import shutil
import sys
import time
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

from support.sides import observing


def fresh_state() -> None:
    """What a new process would have: a graph, seeds, writers, the level and counts of logging."""
    tf.reset_default_graph()
    tf.summary.FileWriterCache.clear()
    tf.logging.set_verbosity(tf.logging.INFO)
    tf_logging._log_counter_per_token.clear()
    random.seed(0)
    np.random.seed(0)
    gc.collect()
    gc.freeze()  # what the first scenarios have imported and cached


def leaves_traces() -> bool:
    """Whether the last scenario left a graph open, so that the next one needs another process."""
    gc.collect()  # closes generators that were given up
    return not tf.executing_eagerly() or not ops._default_graph_stack.is_cleared()


def takes(name: str, request: dict[str, Any]) -> bool:
    """Whether this process is the first to take a scenario."""
    try:
        with (pathlib.Path(request["out"]) / f"{name}.taken").open("x") as file:
            file.write(request["process"])
    except FileExistsError:
        return False
    return True


def run(name: str, scenario: Any, request: dict[str, Any]) -> dict[str, Any]:
    fresh_state()
    out = pathlib.Path(request["out"])
    home = out / f"{name}.home"
    home.mkdir()
    environment, folder = dict(os.environ), os.getcwd()
    os.chdir(home)
    stacks = out / f"{name}.stacks"
    with stacks.open("w") as file:
        faulthandler.dump_traceback_later(request["limit"], exit=True, file=file)
        try:
            return observing.observe(scenario, str(home), request["largest"])
        finally:
            faulthandler.cancel_dump_traceback_later()
            stacks.unlink()
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            if not request["keeps_homes"]:
                shutil.rmtree(home, ignore_errors=True)


def write(name: str, observed: dict[str, Any], out: pathlib.Path) -> None:
    unfinished = out / f"{name}.unfinished"
    unfinished.write_text(json.dumps(observed))
    unfinished.rename(out / f"{name}.json")


def do_all(scenario_of: Any, request: dict[str, Any]) -> None:
    """The scenarios that nobody has taken, up to one that leaves traces."""
    out = pathlib.Path(request["out"])
    for name in filter(lambda name: takes(name, request), request["names"]):
        wall, cpu = time.monotonic(), time.process_time()
        write(name, run(name, scenario_of(name), request), out)
        with (out / "times").open("a") as file:  # seconds of the wall's clock, and of the CPU
            file.write(f"{time.monotonic() - wall:.2f} {time.process_time() - cpu:.2f} {name}\n")
        if leaves_traces():
            return


def main() -> None:
    request = json.load(sys.stdin)
    out = pathlib.Path(request["out"])
    setting = importlib.import_module(f"{request['suite']}.setting")
    with setting.scenarios(request["side"], request["settings"], out) as scenario_of:
        gc.collect()
        gc.freeze()  # collections, of which each scenario has two, need not look at what is there
        do_all(scenario_of, request)
        sys.stdout.flush()
        os._exit(0)  # servers of TensorFlow in here cannot be stopped, and would be waited for


if __name__ == "__main__":
    main()
