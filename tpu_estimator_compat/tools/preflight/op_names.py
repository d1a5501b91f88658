"""Finds the user's operation behind a value of a compiled program, in the program's text.

Instructions carry the name of their operation, except those that the compiler adds. If an added
instruction moves a value (to other memory of the chip, into other layouts, in and out of tuples),
it gets the name of the operation that made the value. If it computes one, it gets the name of the
instruction that uses the result.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

_COMPUTATION = re.compile(r"^(?:ENTRY )?%(\S+) \(")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%(\S+) = .*? ([a-z][\w-]*)\(([^)]*)\)(.*)")
_OPERAND = re.compile(r"%([^\s,]+)")
_OP_NAME = re.compile(r'metadata=\{[^{}]*?op_name="((?:[^"\\]|\\.)*)"')
_CALLED = re.compile(r", calls=%([^\s,]+)")
_INDEX = re.compile(r"^, index=(\d+)")

_MOVES = {
    "async-done",
    "async-start",
    "async-update",
    "bitcast",
    "copy",
    "copy-done",
    "copy-start",
    "dynamic-slice",
    "get-tuple-element",
    "reshape",
    "slice",
    "slice-done",
    "slice-start",
    "transpose",
}


@dataclasses.dataclass(frozen=True)
class _Instruction:
    """One line of the program; `index` is the one of a get-tuple-element."""

    kind: str
    operands: tuple[str, ...]
    op_name: str
    called: str
    index: int | None


class OpNames:
    """The user's operations by instruction of a program's text; `shown` converts their names."""

    def __init__(self, program: str, shown: Callable[[str], str] = str):
        self._instructions: dict[str, _Instruction] = {}
        self._roots: dict[str, str] = {}
        self._users: dict[str, str] = {}
        computation = ""
        for line in program.splitlines():
            if header := _COMPUTATION.match(line):
                computation = header[1]
            elif match := _INSTRUCTION.match(line):
                if match[1]:
                    self._roots[computation] = match[2]
                found = _instruction(shown, *match.groups()[2:])
                self._instructions[match[2]] = found
                for operand in found.operands:
                    self._users.setdefault(operand, match[2])

    def is_parameter(self, name: str) -> bool:
        return name in self._instructions and self._instructions[name].kind == "parameter"

    def of(self, name: str, element: int | None = None) -> str:
        """The operation that makes an instruction's value; empty where the compiler names none."""
        made_by = self._maker(name, element)
        if self.is_parameter(name):
            return made_by
        while not made_by and name in self._users:
            name = self._users[name]
            made_by = self._maker(name, None)
        return made_by

    def _maker(self, name: str, element: int | None) -> str:
        instruction = self._instructions.get(name)
        if instruction is None:
            return ""
        # A fusion with several results carries the name of only one of them.
        made_by = self._part(instruction, element) or instruction.op_name
        if made_by:
            return made_by
        if instruction.called in self._roots:
            return self._maker(self._roots[instruction.called], None)
        if instruction.kind in _MOVES and instruction.operands:
            return self._maker(instruction.operands[0], instruction.index)
        return ""

    def _part(self, instruction: _Instruction, element: int | None) -> str:
        root = self._instructions.get(self._roots.get(instruction.called, ""))
        if element is None or root is None or root.kind != "tuple":
            return ""
        return self._maker(root.operands[element], None) if element < len(root.operands) else ""


def _instruction(shown: Callable[[str], str], kind: str, operands: str, rest: str) -> _Instruction:
    op_name, called, index = _OP_NAME.search(rest), _CALLED.search(rest), _INDEX.match(rest)
    return _Instruction(
        kind,
        tuple(_OPERAND.findall(operands)),
        shown(op_name[1]) if op_name else "",
        called[1] if called else "",
        int(index[1]) if index else None,
    )
