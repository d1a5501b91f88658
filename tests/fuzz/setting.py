"""Surroundings of drawn programs: `seed-N` is drawn, other names have choices in the settings."""

import contextlib
import functools
import importlib
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

HERE = pathlib.Path(__file__).parent


@contextlib.contextmanager
def scenarios(
    side: str, settings: dict[str, Any], out: pathlib.Path
) -> Iterator[Callable[[str], Callable[..., Any]]]:
    sys.path.insert(0, str(HERE))
    if side == "ours":
        importlib.import_module("tpu_estimator_compat").install(["programs"])
    else:
        assert importlib.import_module("tensorflow").estimator.Estimator
    choices = importlib.import_module("programs.choices")
    calls = importlib.import_module("programs.calls")

    def of(name: str) -> Callable[..., Any]:
        given = settings.get("programs", {}).get(name)
        if given is None:
            given = choices.drawn(int(name.removeprefix("seed-")))
        return functools.partial(calls.run, given)

    yield of
