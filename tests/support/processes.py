"""Processes of other programs, and waits for them."""

import time
from collections.abc import Callable
from typing import Any

import psutil


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie; it may end during the call."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits until `condition()` is true, and returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value
