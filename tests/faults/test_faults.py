"""The list of faults: each can be made in the package as it is now."""

from __future__ import annotations

import ast
import collections
import pathlib

import pytest
from support import TESTS

import tpu_estimator_compat

from .faults import FAULTS, KINDS, MISSION

PACKAGE = pathlib.Path(tpu_estimator_compat.__file__).parent
FEWEST_OF_A_ROOM = 2


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_made(fault):
    text = (PACKAGE / fault.file).read_text()
    assert text.count(fault.old) == 1
    assert fault.new != fault.old
    ast.parse(text.replace(fault.old, fault.new))


def test_rooms_have_tests():
    rooms = {room for fault in FAULTS for room in (fault.room, *fault.beside)}
    without = [room for room in rooms if not any((TESTS / room).glob("**/test_*.py"))]
    assert without == []


def test_names_are_unique():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_room_and_every_kind_has_faults():
    rooms = collections.Counter(fault.room for fault in FAULTS)
    assert set(rooms) == set(MISSION)
    assert min(rooms.values()) >= FEWEST_OF_A_ROOM
    assert {fault.kind for fault in FAULTS} == set(KINDS)
