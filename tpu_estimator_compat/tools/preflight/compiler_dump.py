"""Reads the buffers and collectives of a compiled program from the files that XLA dumps.

The files are text: the buffer assignment (sizes on the device, padding included), the live ranges
of the buffers in the order of the schedule, and the program, whose instructions carry the names of
the user's operations. The pinned version of the compiler pins their format. The executable would
not do: it has no buffer assignment, and jaxlib cannot read some of libtpu's programs back.
"""

from __future__ import annotations

import collections
import itertools
import math
import pathlib
import re
from collections.abc import Sequence

from tpu_estimator_compat.tools.preflight.compiled import Place, RawBuffer
from tpu_estimator_compat.tools.preflight.op_names import OpNames
from tpu_estimator_compat.tools.preflight.targets.target import Target

_PROGRAM = ".txt"
_ASSIGNMENT = "-buffer-assignment.txt"
_LIVE_RANGES = "-live-range.txt"

# Asynchronous collectives are counted where they start.
_COLLECTIVE = re.compile(
    r"^\s*(?:ROOT )?%\S+ = .*? ((?:ragged-)?all-to-all|all-reduce|all-gather|reduce-scatter"
    r"|collective-permute|collective-broadcast)(?:-start)?\(",
    re.MULTILINE,
)
# Calls of cuDNN. Without the library, the sizes of their workspaces are unknown.
_CONVOLUTION = re.compile(r'custom_call_target="__cudnn\$conv')
_ALLOCATION = re.compile(r"^allocation \d+: size (\d+), (color [1-9]\d*, )?(?:page \d+, )?(.*)")
_VALUE = re.compile(r"^ value: <\d+ (\S+) @\d+> \(size=(\d+),offset=\d+\): (.*)")
_NAME = re.compile(r"([^{]+)(?:\{(\d*)[\d,]*\})?")
_LIVE_RANGE = re.compile(r"^    (\S+):(\d+)-(\d+)$", re.MULTILINE)
# The first number in "f32", "bf16", "f8e4m3fn" or "s4" is that of the bits of an element.
_ARRAY = re.compile(r"([a-z]+(\d*)[a-z0-9]*)\[([\d,]*)\]")

STEP = "tensorflow_step"
"""The last part of the prefix that the JAX runtime gives to the names of a step's operations."""

_AROUND_STEP = re.compile(rf"^.*?\b{STEP}/")
_ARGUMENT = re.compile(r"^(variables|feeds)\[(\d+)\]$")


class CompilerDump:
    """The files of one program in the compiler's `xla_dump_to`."""

    def __init__(self, directory: pathlib.Path, target: Target):
        self._directory = directory
        self._target = target

    def collectives(self) -> dict[str, int]:
        """Number of exchanges between replicas, by kind such as "all-reduce"."""
        if not (program := self._text(_PROGRAM)):
            raise ValueError(f"No compiled program was written into {self._directory}.")
        return dict(collections.Counter(_COLLECTIVE.findall(program)))

    def convolutions(self) -> int:
        """Number of convolutions by cuDNN, whose workspaces the compiler does not know."""
        return len(_CONVOLUTION.findall(self._text(_PROGRAM)))

    def buffers(self, variables: Sequence[str]) -> tuple[RawBuffer, ...]:
        """All arguments and outputs, and the temporaries that are alive at the peak, largest first.

        Empty where the compiler has not placed buffers. `variables` are the names of the program's
        arguments, in their order.
        """
        names = OpNames(self._text(_PROGRAM), lambda name: _shown(name, variables))
        assignment = self._text(_ASSIGNMENT)
        fixed, temporaries = _buffers(assignment, names, self._target.has_other_memories)
        ranges = _LIVE_RANGE.findall(self._text(_LIVE_RANGES))
        alive = _at_peak(temporaries, {name: (int(a), int(b)) for name, a, b in ranges})
        return tuple(sorted(fixed + alive, key=lambda buffer: -buffer.size))

    def _text(self, ending: str) -> str:
        # The first file has the program; others have parts of it for other cores of a chip.
        files = sorted(self._directory.glob(f"*{self._target.dumped}{ending}"))
        return files[0].read_text(errors="replace") if files else ""


def _shown(name: str, variables: Sequence[str]) -> str:
    """The operation, variable, or input ("feeds[3]") behind a name of the runtime's function."""
    if argument := _ARGUMENT.match(name):
        return variables[int(argument[2])] if argument[1] == "variables" else name
    inside = _AROUND_STEP.sub("", name)
    return "" if inside == name else inside


def _buffers(
    assignment: str, names: OpNames, has_other_memories: bool
) -> tuple[list[RawBuffer], dict[str, RawBuffer]]:
    """Arguments and outputs; and temporaries by the name of the value that they hold."""
    fixed: list[RawBuffer] = []
    temporaries: dict[str, RawBuffer] = {}
    allocation, kind = 0, ""
    values: list[re.Match[str]] = []
    for line in [*assignment.splitlines(), "allocation 0: size 0, end"]:
        if value := _VALUE.match(line):
            if not value[3].startswith("("):  # a tuple's own buffer only lists its parts' buffers
                values.append(value)
        elif match := _ALLOCATION.match(line):
            if _is_fixed(kind) and values:
                fixed.append(_fixed(allocation, kind, values, names))
            elif "temp" in kind and not _is_fixed(kind):
                temporaries |= {v[1]: _buffer(v, int(v[2]), names) for v in values}
            elsewhere = has_other_memories and match[2]
            allocation, kind = int(match[1]), "" if elsewhere else match[3]
            values = []
    return fixed, temporaries


def _is_fixed(kind: str) -> bool:
    return kind.startswith("parameter ") or "maybe-live-out" in kind


def _fixed(size: int, kind: str, values: list[re.Match[str]], names: OpNames) -> RawBuffer:
    if kind.startswith("parameter "):
        given = (value for value in values if names.is_parameter(value[1]))
        return _buffer(next(given, values[0]), size, names, Place.ARGUMENT)
    return _buffer(values[-1], size, names, Place.OUTPUT)


def _buffer(
    value: re.Match[str], size: int, names: OpNames, place: Place = Place.TEMPORARY
) -> RawBuffer:
    shape, name = value[3], _op_name(value[1], names)
    feed = _ARGUMENT.match(name)
    number = int(feed[2]) if feed else None
    return RawBuffer(size, _unpadded(shape, size), shape, "" if feed else name, place, number)


def _op_name(value: str, names: OpNames) -> str:
    """The op name of a value such as "fusion.20", or "fusion.20{1}" for a part of its tuple."""
    match = _NAME.fullmatch(value)
    return names.of(match[1], int(match[2]) if match[2] else None) if match else ""


def _unpadded(shape: str, size: int) -> int:
    """Bytes of an array without padding; `size` where the shape is no array's."""
    match = _ARRAY.match(shape)
    if match is None:
        return size
    bits = 8 if match[1] == "pred" else int(match[2] or 0)
    elements = math.prod(int(length) for length in match[3].split(",") if length)
    return min(size, math.ceil(elements * bits / 8))


def _at_peak(
    temporaries: dict[str, RawBuffer], ranges: dict[str, tuple[int, int]]
) -> list[RawBuffer]:
    """The buffers alive at the first step of the schedule at which their total is largest."""
    alive = {}
    for name, buffer in temporaries.items():
        key = name if name.endswith("}") else name + "{}"
        if key in ranges:
            alive[key] = buffer
    changes: collections.Counter[int] = collections.Counter()
    for key, buffer in alive.items():
        start, end = ranges[key]
        changes[start] += buffer.size
        changes[end + 1] -= buffer.size
    if not changes:
        return []
    steps = sorted(changes)
    totals = list(itertools.accumulate(changes[step] for step in steps))
    peak = steps[totals.index(max(totals))]
    return [b for key, b in alive.items() if ranges[key][0] <= peak <= ranges[key][1]]
