"""The table against what it claims: every served name is called, every refused one refuses.

Names that `tpu_estimator_compat.old_names.contrib` and `canned` serve are proved in the test files
of their modules.
"""

import pathlib

import pytest
from support.proofs import proved_rows
from support.proofs.names import (
    contrib_others,
    contrib_tpu,
    estimator,
    internals,
    keras_python,
    layers,
    tensorflow_python,
    tpu_estimator,
)
from support.proofs.proving import each_proof_of, found
from support.tables import failures

from tpu_estimator_compat.old_names.legacy import overlay, table
from tpu_estimator_compat.old_names.legacy.table import Status

ROWS = table.load().rows

SERVED = {name for name, row in ROWS.items() if row.status is not Status.REFUSED}

test_served_names = each_proof_of(
    contrib_others,
    contrib_tpu,
    estimator,
    internals,
    keras_python,
    layers,
    tensorflow_python,
    tpu_estimator,
)


def test_every_served_row_has_a_proof_and_every_proof_a_row():
    assert proved_rows() == SERVED


def test_every_module_of_proofs_is_tested():
    """By a test file of its name (with or without the module's before it), or by this one."""
    tests = pathlib.Path(__file__).parents[1]
    proofs = tests.parent / "support/proofs"
    for path in proofs.rglob("*.py"):
        name = path.relative_to(proofs).with_suffix("")
        if "@proves" not in path.read_text():
            continue
        if name.parts[0] == "names":
            assert name.name in globals(), name
            continue
        own = (tests / name / f"test_{name.name}.py",) * (tests / name).is_dir()
        places = [*(tests / name.parent).glob(f"test*_{name.name}.py"), *own]
        texts = [place.read_text() for place in places if place.exists()]
        assert any(
            f"import {name.name} as proofs\n" in text
            and "\ntest_served_names = each_proof_of(proofs)\n" in text
            for text in texts
        ), name


def test_refused_names_say_what_to_do():
    assert failures(refuses, sorted(set(ROWS) - SERVED)) == []


def refuses(name):
    thing = found(name)
    if not isinstance(thing, overlay.Refused):
        # A module of which parts are served: everything else in it is refused.
        thing = overlay.member(thing, name, "something_else")
    with pytest.raises(NotImplementedError) as raised:
        thing(1, key=2)
    assert name in str(raised.value)
    assert ROWS[name].advice in str(raised.value)
    with pytest.raises(NotImplementedError):

        class _Derived(thing):
            pass
