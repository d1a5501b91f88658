"""Wrong calls of the whole public API: each ends in a clear error, the original's where it had one.

They are listed in `wrong_calls.csv`: the call; TF_CONFIG for it; the type and words of our error;
what the original says, "same" where its words are in ours, nothing where it cannot be asked; and
the reason where that is not the same.
"""

import csv
import functools
import pathlib

import pytest

import tpu_estimator_compat as tpu

from . import calls_probe

with open(pathlib.Path(__file__).with_name("wrong_calls.csv"), newline="") as file:
    ROWS = list(csv.DictReader(file))
CALLS = [(row["call"], {"TF_CONFIG": row["TF_CONFIG"]} if row["TF_CONFIG"] else {}) for row in ROWS]
ASKED = [number for number, row in enumerate(ROWS) if row["original"]]


def _named(numbers):
    ids = [f"{number + 2}:{ROWS[number]['call']}{ROWS[number]['TF_CONFIG']}" for number in numbers]
    return pytest.mark.parametrize("number", numbers, ids=ids)


@functools.cache
def our_report(number):
    return calls_probe.report(tpu.estimator, tpu.tpu, *CALLS[number])


@pytest.fixture(scope="module")
def originals_reports(original):
    reports = original.run(calls_probe.__file__, given=[CALLS[number] for number in ASKED])
    return dict(zip(ASKED, reports, strict=True))


def squeezed(message):
    """`message` without white space, which the original lacks here and there."""
    return "".join(message.split())


@_named(range(len(ROWS)))
def test_a_wrong_call_says_what_is_wrong(number):
    report, row = our_report(number), ROWS[number]
    assert report, f"accepted: {row['call']}"
    assert report["error"] == row["error"]
    assert squeezed(row["words"]) in squeezed(report["message"])


@pytest.mark.slow
@pytest.mark.parity
@_named(ASKED)
def test_the_original_says_what_the_list_says(number, originals_reports):
    original, row = originals_reports[number], ROWS[number]
    if row["original"] == "same":
        assert original["error"] == row["error"]
        said = squeezed(original["message"]).rstrip(".")
        assert said in squeezed(our_report(number)["message"])
    elif row["original"] == "accepted":
        assert original == {}
    else:
        told = f"{original['error']}: {original['message']}"
        assert squeezed(told).startswith(squeezed(row["original"]))


def test_the_list_is_long_and_gives_reasons():
    assert len(ROWS) > 300
    assert len({call for call, _ in CALLS}) > 300
    for row in ROWS:
        assert row["words"]
        assert bool(row["reason"]) == (row["original"] != "same"), row["call"]
