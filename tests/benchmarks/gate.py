"""Gate: lets a running training go for one block of steps at a time, on the driver's command."""

import json
import os
import resource
import sys
import time
from typing import Any


class Channel:
    """JSON lines to and from the driver; what libraries print goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def send(self, **fields: Any) -> None:
        print(json.dumps({**fields, **memory()}), file=self._out, flush=True)

    def receive(self) -> dict[str, Any]:
        """The next command; ends the process where there is none."""
        line = sys.stdin.readline()
        if not line:
            self._out.flush()
            os._exit(0)  # In the middle of a training: no tidy way out is wanted.
        return json.loads(line)


def memory() -> dict[str, int]:
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"resident": resident, "peak": peak}


class Gate:
    """Counts steps, reports each block, and holds the training between blocks.

    The first block is the first step; its time starts with the gate's making. The driver sends
    `{"steps": n}` for each further block.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._target = 1
        self._from = 0
        self._cpu = time.process_time()
        self._started = time.perf_counter()

    def steps_left(self, step: int) -> int:
        """Steps from `step` to the end of the block, at least one."""
        return max(1, self._target - step)

    def reached(self, step: int) -> None:
        """`step` steps are done. At the end of a block, reports and waits for the next one."""
        if step < self._target:
            return
        seconds = time.perf_counter() - self._started
        cpu = time.process_time() - self._cpu
        self._channel.send(steps=step - self._from, seconds=seconds, cpu=cpu)
        self._target = step + self._channel.receive()["steps"]
        self._from = step
        self._cpu = time.process_time()
        self._started = time.perf_counter()
