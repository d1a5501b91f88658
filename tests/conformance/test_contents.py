"""What is compared is there: scenarios about calls, events and files have many of them."""

from typing import Any

import pytest

from .setting import PLACES

pytestmark = [pytest.mark.slow, pytest.mark.parity]


def hooks_and_listeners(original: dict[str, Any]) -> None:
    methods = {call[1] for call in original["calls"]}
    assert {"begin", "after_create_session", "before_run", "after_run", "end"} <= methods
    assert {"before_save", "after_save"} <= methods


def exports_and_evaluations(original: dict[str, Any]) -> None:
    folders = {name.rpartition("/")[0] for name in original["events"]}
    assert folders == {"model", "model/eval_while"}
    exports = [call for call in original["calls"] if call[0] == "exporter"]
    assert [call[4] for call in exports] == [False, False, False, False, True, True]


def two_checkpoints(original: dict[str, Any]) -> None:
    assert original["checkpoints"]["model"]["kept"] == ["model.ckpt-33", "model.ckpt-37"]


def many_checkpoints(original: dict[str, Any]) -> None:
    assert len([name for name in original["files"] if name.endswith(".index")]) > 10


def an_early_end(original: dict[str, Any]) -> None:
    assert original["result"][0][0]["global_step"][""] < 60


def effects(original: dict[str, Any]) -> None:
    assert {name for name, _ in original["result"][0]} == {
        *("even", "odd", "after", "nil", "one", "after loop", "op", "inner", "small"),
        *("not nested", "is 1", "not 1", "first", "second"),
    }


def summaries(original: dict[str, Any]) -> None:
    folders = {name.rpartition("/")[0] for name in original["events"]}
    assert {"model/train", "model/eval", "model/infer"} <= folders
    assert all(original["events"].values())


def a_failure(original: dict[str, Any]) -> None:
    assert original["result"] == "failed"


CONTENTS = {
    "listening.trains-estimator": hooks_and_listeners,
    "listening.schedule-tpu": exports_and_evaluations,
    "listening.keeps_two-tpu": two_checkpoints,
    "listening.keeps_all-tpu": many_checkpoints,
    "listening.lower-tpu": an_early_end,
    "listening.no_increase-tpu": an_early_end,
    "listening.higher-tpu": an_early_end,
    "host_side.effects": effects,
    "host_side.summaries": summaries,
    "host_side.summaries_opened_by_the_model": summaries,
    "host_side.summaries_of_a_failed_training": a_failure,
}


@pytest.mark.parametrize("name", CONTENTS)
def test_the_original_did_it(observed, name):
    original, _ = observed[name]
    assert original["error"] is None
    CONTENTS[name](original)


@pytest.mark.parametrize("name", [f"host_side.global_step_stays{suffix}" for suffix in PLACES])
def test_a_global_step_that_stays_is_told(observed, name):
    """Five times here; a read of the original may meet the step of the run before."""
    told = [
        {line for line in side["log"] if "has not been increased" in line}
        for side in observed[name]
    ]
    assert told[0] == told[1]
    assert len([line for line in observed[name][1]["log"] if line in told[1]]) == 5
