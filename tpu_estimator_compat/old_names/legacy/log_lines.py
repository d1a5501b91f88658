"""Prints each log line of TensorFlow on the terminal once.

TensorFlow's logger writes to the terminal, and also passes its records to the root logger. A script
that sets up `logging` or absl's logging adds a root handler, which prints the same record again.
"""

from __future__ import annotations

import logging
import sys

_LOGGER = logging.getLogger("tensorflow")


def tell_once() -> None:
    """Keeps root handlers from printing records that TensorFlow's own handler prints.

    Handlers that write to files get all records; so do terminal handlers if the script removed
    TensorFlow's own.
    """
    _LOGGER.callHandlers = _call_handlers  # type: ignore[method-assign]


def _call_handlers(record: logging.LogRecord) -> None:
    own = list(_LOGGER.handlers)
    others = logging.getLogger().handlers if _LOGGER.propagate else []
    if any(map(_on_terminal, own)):
        others = [handler for handler in others if not _on_terminal(handler)]
    if not own and not others:
        logging.Logger.callHandlers(_LOGGER, record)  # uses logging's last-resort handler
    for handler in [*own, *others]:
        if record.levelno >= handler.level:
            handler.handle(record)


def _on_terminal(handler: logging.Handler) -> bool:
    writer = getattr(handler, "python_handler", handler)  # absl's handler delegates to it
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    stream = getattr(writer, "stream", None)
    return stream is not None and stream in streams
