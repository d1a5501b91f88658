"""Parity of what listeners see: the same legacy code on both sides, and records that are equal.

Hooks' calls with their order and arguments, saving listeners, exporters, log lines, events with
tags, steps and values, checkpoints and files, and what the calls return.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.original import Original

from . import scenarios, sides

pytestmark = [pytest.mark.slow, pytest.mark.parity]

AROUND_MODEL_FN = {"Calling model_fn.", "Done calling model_fn.", "Running infer on CPU/GPU"}


WHILE_WRITING = "is not in all_model_checkpoint_paths. Manually adding it."


@pytest.fixture(scope="session")
def records(
    original: Original, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of the original and of this package."""
    return sides.both(original.python, "scenarios", tmp_path_factory)


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_both_sides_tell_the_same(records, name):
    original, ours = (dict(side[name]) for side in records)
    for record in (original, ours):
        error = record.pop("error")
        assert error is None, error
    if name == "exporting-tpu":
        # In an export for TPU, the original called model_fn without the usual lines around it.
        for record in (original, ours):
            record["log"] = [line for line in record["log"] if line not in AROUND_MODEL_FN]
    # A difference that the guide names: a checkpoint is written while training goes on, so what TF
    # says while it writes comes when it does. It is said as often.
    said = [[line for line in r["log"] if WHILE_WRITING in line] for r in (original, ours)]
    assert said[0] == said[1]
    for record in (original, ours):
        record["log"] = [line for line in record["log"] if WHILE_WRITING not in line]
    assert original["log"]
    assert ours == original


def test_the_scenarios_are_about_something(records):
    """What is compared is there: calls of every kind, events, exports, several checkpoints."""
    original, _ = records
    methods = {call[1] for call in original["trains-estimator"]["calls"]}
    assert {"begin", "after_create_session", "before_run", "after_run", "end"} <= methods
    assert {"before_save", "after_save"} <= methods
    assert set(original["schedule-tpu"]["events"]) == {".", "eval_while"}
    exports = [c for c in original["schedule-tpu"]["calls"] if c[0] == "exporter"]
    assert [e[4] for e in exports] == [False, False, False, False, True, True]
    assert original["keeps_two-tpu"]["kept"] == ["model.ckpt-33", "model.ckpt-37"]
    written = [name for name in original["keeps_all-tpu"]["files"] if name.endswith(".index")]
    assert len(written) > 10
    for name in ("lower", "no_increase", "higher"):
        assert original[f"{name}-tpu"]["result"][0][0]["global_step"] < 60
