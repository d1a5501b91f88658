"""TensorFlow's log lines on the terminal, once each.

TensorFlow's logger writes to the terminal itself, and passes its records on to the root logger. A
script that sets up `logging`, or absl's, adds a handler there that writes to the terminal too.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

_LOGGER = logging.getLogger("tensorflow")


@contextlib.contextmanager
def told_once() -> Iterator[None]:
    """Has a record that TensorFlow's own handler writes to the terminal appear there once.

    Handlers of files, and those of a logger whose own handler the script took away, get all.
    """
    before = vars(_LOGGER).get("callHandlers")  # of a run around this one
    _LOGGER.callHandlers = _call_handlers  # type: ignore[method-assign]
    try:
        yield
    finally:
        del _LOGGER.callHandlers
        if before is not None:
            _LOGGER.callHandlers = before  # type: ignore[method-assign]


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Gives each logger its level and its handlers back, as they were before."""
    root = logging.getLogger()
    named = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [(logger, logger.level, list(logger.handlers)) for logger in [root, *named]]
    disabled = root.manager.disable
    try:
        yield
    finally:
        for logger, level, handlers in before:
            logger.setLevel(level)
            logger.handlers[:] = handlers
        logging.disable(disabled)


def _call_handlers(record: logging.LogRecord) -> None:
    own = list(_LOGGER.handlers)
    others = logging.getLogger().handlers if _LOGGER.propagate else []
    if any(map(_on_terminal, own)):
        others = [handler for handler in others if not _on_terminal(handler)]
    if not own and not others:
        logging.Logger.callHandlers(_LOGGER, record)  # has a last resort
    for handler in [*own, *others]:
        if record.levelno >= handler.level:
            handler.handle(record)


def _on_terminal(handler: logging.Handler) -> bool:
    writer = getattr(handler, "python_handler", handler)  # absl's handler has one that writes
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return getattr(writer, "stream", None) in streams
