"""The table against what it claims: every served name is called, every refused one refuses.

The proofs are in `tests/support/proofs`; `-k crf` runs those of names with `crf`.
"""

import inspect

import pytest
from support.proofs import PROOFS, proved_rows
from support.proofs.served import ROWS, SERVED, found, is_as_it_says, without_proof
from support.tables import failures

from tpu_estimator_compat.old_names.legacy import overlay, table
from tpu_estimator_compat.old_names.legacy.table import Status

SERVING = {Status.WORKS, Status.DIFFERS}
proved_rows()  # imports all proofs


def said(part):
    return part if isinstance(part, str) else part.__name__


@pytest.mark.parametrize(
    ("proof", "row"), [(proof, row) for proof, rows in PROOFS.items() for row in rows], ids=said
)
def test_served_names(proof, row, tmp_path):
    wants_folder = "tmp_path" in inspect.signature(proof).parameters
    proof(found(row), *[tmp_path] * wants_folder)


def test_every_served_row_is_what_it_says_it_is():
    assert failures(is_as_it_says, SERVED) == []


def test_every_served_row_has_a_proof_and_every_proof_a_row():
    assert without_proof() == []
    assert {table.load().covering(name).status for name in proved_rows()} <= SERVING


def test_refused_names_say_what_to_do():
    assert failures(refuses, sorted(set(ROWS) - set(SERVED))) == []


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
