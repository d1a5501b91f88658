"""Scans of recurrent cells, one or several in a stack, become layers such as LSTM.

Lengths become a mask. What a cell's dropout draws for each step is a layer of its own before or
after, over all steps. A scan of something else stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import (
    LAYER,
    SCAN,
    Bound,
    Layer,
    Node,
    Program,
    Value,
    constant,
)
from tpu_estimator_compat.tools.to_keras.layers.building import dropout, sizes
from tpu_estimator_compat.tools.to_keras.layers.matching import Found
from tpu_estimator_compat.tools.to_keras.layers.patterns import RULES


@dataclasses.dataclass(frozen=True)
class Gates:
    """A weight of a Keras cell, of TensorFlow's variables with the same gates in another order.

    Attributes:
      rows: of the kernels, those for the input or for the state; None for biases.
      order: for each gate of Keras, its number in the variables.
      forget: what TensorFlow adds to gate 1 of Keras in each step.
    """

    units: int
    rows: tuple[int | None, int | None] | None
    order: tuple[int, ...]
    forget: float = 0.0

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        made = self.of_slots(*arrays)
        if self.forget:
            made[..., self.units : 2 * self.units] += self.forget
        return made

    def of_slots(self, *arrays: np.ndarray) -> np.ndarray:
        """The same of what an optimizer keeps for each element of the variables."""
        rows = slice(None) if self.rows is None else slice(*self.rows)
        parts = [a[rows] for a in arrays]
        pieces = [p for a in parts for p in np.split(a, a.shape[-1] // self.units, axis=-1)]
        return np.concatenate([pieces[i] for i in self.order], axis=-1)


_CELLS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm": ("layers.LSTM", (0, 2, 1, 3), {}),
    "gru": ("layers.GRU", (1, 0, 2), {"reset_after": False}),
    "simple": ("layers.SimpleRNN", (0,), {}),
}
"""By pattern, the layer, the order of its gates, and its options."""
_PATTERNS = {kind: RULES.compile(kind) for kind in _CELLS}
_MASKED = RULES.compile("Select(finished, before, after)")
_DROPPED = RULES.compile("dropped")


@dataclasses.dataclass
class _Cell:
    kind: str
    found: Found
    states: list[int]
    """Places of the hidden state, and of an LSTM's memory, in the scan's inputs."""
    after: list[Found]
    """Dropouts of what the cell makes, the last one first."""


def find_recurrent(program: Program) -> None:
    """Replaces each scan of recurrent cells, in place."""
    for node in program.nodes():
        for body in node.bodies.values():
            find_recurrent(body)
        if node.kind == SCAN and node.attrs["read"] == 1:
            scan = _Scan(program, node)
            cells = scan.cells()
            if cells is not None and scan.owns(cells):
                scan.replace(cells)


class _Scan:
    def __init__(self, program: Program, node: Node):
        self.program, self.node, self.step = program, node, node.bodies["step"]
        self.carried = node.attrs["carried"]
        self.places = {value: int(key) for key, value in self.step.inputs.items()}
        self.results = list(self.step.outputs.values())
        self.lengths: Value | None = None
        self.masks = False

    def cells(self) -> list[_Cell] | None:
        """The cells from the first to the last, or None where a step is something else."""
        if len(self.results) != self.carried + 1:
            return None
        value = self._unmasked(self.results[-1], None)
        self.masks = value is not self.results[-1]
        cells: list[_Cell] = []
        dropouts: list[Found] = []
        while value is not None and self.places.get(value) != self.carried:
            dropped = next(_DROPPED(value, {}), None)
            if dropped:
                dropouts, value = [*dropouts, dropped], dropped["x"]
                continue
            cell = self._cell(value, dropouts)
            if cell is None:
                return None
            cells.insert(0, cell)
            dropouts, value = [], cell.found["element"]
        states = [place for cell in cells for place in cell.states]
        if value is None or not cells or sorted(states) != [*range(self.carried)]:
            return None
        cells[0].found["before"] = dropouts
        return cells

    def _cell(self, value: Value, dropouts: list[Found]) -> _Cell | None:
        for kind, pattern in _PATTERNS.items():
            for found in pattern(value, {}):
                made = {"hidden": value}
                if kind == "lstm":
                    made["memory"] = found["next_memory"]
                places = [self.places.get(found[name], -1) for name in made]
                if all(
                    0 <= place < self.carried
                    and self._unmasked(self.results[place], found[name]) is after
                    for place, (name, after) in zip(places, made.items(), strict=True)
                ):
                    return _Cell(kind, found, places, dropouts)
        return None

    def _unmasked(self, value: Value, before: Value | None) -> Value | None:
        """What a step makes, if for those sequences alone that are as long.

        Args:
          before: what shorter sequences keep; zeros if None.
        """
        found = next(_MASKED(value, {}), None)
        if found is None or self.places.get(found["index"]) != len(self.places) - 1:
            return value if before is None or not self.masks else None
        lengths = self._outer(found["lengths"])
        if lengths is None or self.lengths not in (None, lengths):
            return None
        self.lengths = lengths
        kept = found["before"]
        fits = kept is before if before else _is_zero(self._outer(kept) or kept)
        return found["after"] if fits else None

    def _outer(self, value: Value) -> Value | None:
        """The value outside of the scan that each step takes as it is."""
        place = self.places.get(value, -1)
        return self.node.inputs[place] if self.carried < place < len(self.places) - 1 else None

    def owns(self, cells: list[_Cell]) -> bool:
        """Whether nobody else takes the cells' variables, which layers hold in other orders."""
        weights = [made.weight for cell in cells for made in _weights(cell)]
        made = [each for cell in cells for each in _weights(cell)]
        if len(set(weights)) < len(weights) or any(each.arranged for each in made):
            return False
        own = set(self.step.nodes())
        return all(
            node in own
            for node in _all_nodes(self.program)
            for value in node.inputs
            if value.weight in weights
        ) and not any(value.weight in weights for value in self.program.outputs.values())

    def replace(self, cells: list[_Cell]) -> None:
        users = self.program.users()
        x = self._sequences(self.node.inputs[self.carried])
        stacked = self.node.outputs[self.carried]
        turns = [
            turn
            for user in users.get(stacked, [])
            for turn in (users.get(user.outputs[0], []) if _swaps(user) else [user])
        ]
        back = len(cells) == 1 and all(self._turns(n) for n in (x.node, *turns))
        x = x.node.inputs[0] if back else x
        mask = self._mask(x)
        outputs = {*self.program.outputs.values()}
        for i, cell in enumerate(cells):
            for found in reversed(cell.found.get("before", [])):
                x = self._dropped(x, found)
            states = [self.node.outputs[place] for place in cell.states]
            used = [bool(users.get(state)) or state in outputs for state in states]
            last = i == len(cells) - 1
            wants = not last or bool(users.get(stacked)) or stacked in outputs or cell.after
            node = self._layer(cell, x, mask, bool(wants), any(used[not wants :]))
            if back:
                node.layer.options["go_backwards"] = True
            x = node.outputs[0]
            if any(used[not wants :]):
                for state, made in zip(states, node.outputs[1:], strict=True):
                    self.program.replace(state, made)
            elif used[0]:
                self.program.replace(states[0], x)
            for found in reversed(cell.after):
                x = self._dropped(x, found)
        for turn in turns if back else ():
            self.program.replace(turn.outputs[0], _turned(x))
        for user in users.get(stacked, []):
            if _swaps(user):
                self.program.replace(user.outputs[0], x)
        if x.rank == 3:
            self.program.replace(stacked, _swapped(x))

    def _layer(
        self, cell: _Cell, x: Value, mask: Value | None, sequences: bool, states: bool
    ) -> Node:
        cls, order, options = _CELLS[cell.kind]
        given = cell.found["kernel"].shape[0]
        units = sizes(self.node.inputs[cell.states[0]])[-1]
        size = given - units
        weights = [made.weight for made in _weights(cell)]
        kernels, biases = weights[::2], weights[1::2]
        options = {**options}
        options |= {"return_sequences": True} if sequences else {}
        options |= {"return_state": True} if states else {}
        options |= {"zero_output_for_mask": True} if mask and sequences else {}
        options |= {"dtype": x.dtype} if x.dtype != "float32" else {}
        layer = Layer(cls, "", (), [units], options)
        forget = cell.found.get("forget_bias", 0.0)
        layer.bound = {
            "cell.kernel": Bound(kernels, Gates(units, (0, size), order)),
            "cell.recurrent_kernel": Bound(kernels, Gates(units, (size, None), order)),
            "cell.bias": Bound(biases, Gates(units, None, order, forget)),
        }
        inputs = [x]
        if mask is not None:
            inputs.append(mask)
            layer.call["mask"] = mask
        start = [self.node.inputs[place] for place in cell.states]
        if not all(map(_is_zero, start)):
            inputs += start
            layer.call["initial_state"] = start if len(start) > 1 else start[0]
        node = Node(LAYER, self.node.name, inputs, {"layer": layer}, place=self.node.place)
        assert x.shape is not None
        node.output((*x.shape[:2], units) if sequences else (x.shape[0], units), x.dtype)
        for _ in cell.states if states else ():
            node.output((x.shape[0], units), x.dtype)
        return node

    def _turns(self, node: Node) -> bool:
        """Whether an operation turns sequences of these lengths round."""
        if node.kind == "ReverseV2" and self.lengths is None:
            return node.inputs[1].constant is not None and node.inputs[1].constant.tolist() == [1]
        return (
            node.kind == "ReverseSequence"
            and node.inputs[1] is self.lengths
            and (node.attrs["seq_dim"], node.attrs["batch_dim"]) == (1, 0)
        )

    def _dropped(self, x: Value, found: Found) -> Value:
        call = dropout(found, {})
        layer = Layer(call.name, "", (), call.args, call.options, call=call.call)
        name = "/".join([*self.node.scope, "dropout"])
        return Node(LAYER, name, [x], {"layer": layer}).output(x.shape, x.dtype)

    def _sequences(self, x: Value) -> Value:
        return x.node.inputs[0] if _swaps(x.node) else _swapped(x)

    def _mask(self, x: Value) -> Value | None:
        """Where a sequence is as long, by its length."""
        if self.lengths is None:
            return None
        name, dtype = self.node.name, self.lengths.dtype
        numbers = [constant(np.array(n, dtype)) for n in (0, self.node.attrs["length"], 1)]
        steps = Node("Range", f"{name}/steps", numbers).output((self.node.attrs["length"],), dtype)
        last = constant(np.int32(-1))
        ends = Node("ExpandDims", f"{name}/lengths", [self.lengths, last])
        end = ends.output((*(self.lengths.shape or (None,)), 1), dtype)
        return Node("Less", f"{name}/mask", [steps, end]).output((*(x.shape or ())[:2],), "bool")


def _weights(cell: _Cell) -> list[Any]:
    names = ("kernel", "bias", "last_kernel", "last_bias")
    return [cell.found[name] for name in names if name in cell.found]


def _is_zero(value: Value) -> bool:
    if value.node.kind == "Fill":
        value = value.node.inputs[1]
    return value.constant is not None and not value.constant.any()


def _swaps(node: Node) -> bool:
    """Whether an operation exchanges the first two dimensions of three."""
    order = node.inputs[1].constant if node.kind == "Transpose" else None
    return order is not None and order.tolist() == [1, 0, 2]


def _swapped(x: Value) -> Value:
    node = Node("Transpose", f"{x.node.name}/transpose", [x, constant(np.array([1, 0, 2]))])
    a, b, c = x.shape or (None, None, None)
    return node.output((b, a, c), x.dtype)


def _turned(x: Value) -> Value:
    node = Node("ReverseV2", f"{x.node.name}/reverse", [x, constant(np.array([1]))])
    return node.output(x.shape, x.dtype)


def _all_nodes(program: Program) -> Iterator[Node]:
    for node in program.nodes():
        yield node
        for body in node.bodies.values():
            yield from _all_nodes(body)
