"""The core of parity: this package does what the original did, as `core.json` tells."""

import functools
import json
import sys

import pytest
import tensorflow.compat.v1 as tf
from support import families
from support.sides import observing
from support.sides.comparing import assert_none, differences

from . import core, runs, setting

TOLERANCES = runs.tolerances(variables=1e-4)
COMMITTED = json.loads(core.FILE.read_text())


@pytest.fixture
def observe(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "legacy_namespace", families.legacy_namespace("ours"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    verbosity = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    yield lambda run: observing.observe(
        functools.partial(setting.do, setting.Run(**run)), str(home), sys.maxsize
    )
    tf.logging.set_verbosity(verbosity)


@pytest.mark.parametrize("core_family", core.FAMILIES)
def test_this_package_does_what_the_original_did(observe, tmp_path, core_family):
    given = COMMITTED[core_family]
    start = core.written(given["start"], tmp_path / "start")
    found = core.reduced(observe(core.run(core_family, start)))
    assert len(found["result"]["losses"]) == core.STEPS
    assert_none(differences(given["observed"], found, TOLERANCES))


@pytest.mark.slow
@pytest.mark.parity
def test_the_original_still_does_it(theirs, tmp_path):
    """The file is what its command would write now."""
    assert_none(differences(COMMITTED, core.made(theirs, tmp_path), NOW))


# The same patterns, below a family's "observed".
NOW = tuple((pattern if pattern == "*" else f"*.{pattern}", t) for pattern, t in TOLERANCES)


def test_the_file_is_small():
    assert core.FILE.stat().st_size < 60_000
