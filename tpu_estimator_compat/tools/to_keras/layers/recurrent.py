"""Scans of recurrent cells, one or several in a stack, become layers such as LSTM.

Lengths become a mask. What a cell's dropout draws for each step is a layer of its own before or
after, over all steps. A scan of something else stays as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Node, Value, size_of
from tpu_estimator_compat.tools.to_keras.layers import building as b
from tpu_estimator_compat.tools.to_keras.layers.building import Call, UnfitError, need
from tpu_estimator_compat.tools.to_keras.layers.matching import Found
from tpu_estimator_compat.tools.to_keras.layers.patterns import RULES
from tpu_estimator_compat.tools.to_keras.reading import computed


@dataclasses.dataclass(frozen=True)
class Gates:
    """A weight of a Keras cell, of TensorFlow's variables with the same gates in another order.

    Attributes:
      rows: of the kernels, those for the input or for the state; None for biases.
      order: for each gate of Keras, its number in the variables.
    """

    units: int
    rows: tuple[int | None, int | None] | None
    order: tuple[int, ...]

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        rows = slice(None) if self.rows is None else slice(*self.rows)
        parts = [a[rows] for a in arrays]
        pieces = [p for a in parts for p in np.split(a, a.shape[-1] // self.units, axis=-1)]
        return np.concatenate([pieces[i] for i in self.order], axis=-1)


_CELLS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm": ("layers.LSTM", (0, 2, 1, 3), {}),
    "keras_lstm": ("layers.LSTM", (0, 1, 2, 3), {}),
    "gru": ("layers.GRU", (1, 0, 2), {"reset_after": False}),
    "simple": ("layers.SimpleRNN", (0,), {}),
}
"""By pattern, the layer, the order of its gates, and its options."""
_PATTERNS = {kind: RULES.compile(kind) for kind in _CELLS}
_MASKED = RULES.compile("Select(finished, before, after)")
_DROPPED = RULES.compile("dropped")


@dataclasses.dataclass
class _Cell:
    """A cell, the places of its states in the scan, and dropouts around it, the first one first.

    The states are the hidden one, and an LSTM's memory.
    """

    kind: str
    found: Found
    states: list[int]
    before: list[Call]
    after: list[Call]


def find_recurrent(program: g.Program) -> None:
    """Replaces each scan of recurrent cells, in place."""
    for each in program.programs():
        for node in each.nodes():
            if node.kind == g.SCAN and node.attrs["read"] == 1:
                with contextlib.suppress(UnfitError):
                    scan = _Scan(each, node)
                    scan.replace(scan.cells())


class _Scan:
    def __init__(self, program: g.Program, node: Node):
        self.program, self.node, self.step = program, node, node.bodies["step"]
        self.carried = node.attrs["carried"]
        self.places = {value: int(key) for key, value in self.step.inputs.items()}
        self.results = list(self.step.outputs.values())
        self.lengths: Value | None = None

    def cells(self) -> list[_Cell]:
        """The cells from the first to the last; UnfitError where a step is something else."""
        need(len(self.results) == self.carried + 1)
        value = self._unmasked(self.results[-1], None)
        cells: list[_Cell] = []
        dropouts: list[Call] = []
        while self.places.get(value) != self.carried:
            if dropped := next(_DROPPED(value, {}), None):
                dropouts.insert(0, b.dropout(dropped, {}))
                value = dropped["x"]
            else:
                cells.insert(0, self._cell(value, dropouts))
                dropouts, value = [], cells[0].found["element"]
        need(cells, sorted(p for cell in cells for p in cell.states) == [*range(self.carried)])
        cells[0].before = dropouts
        self._need_weights(cells)
        return cells

    def _cell(self, value: Value, dropouts: list[Call]) -> _Cell:
        for kind, pattern in _PATTERNS.items():
            for found in pattern(value, {}):
                made = {"hidden": value}
                if "memory" in found:
                    made["memory"] = found.get("next_memory") or found["keras_memory"]
                places = [self.places.get(found[name], self.carried) for name in made]
                need(max(places) < self.carried)
                for place, (name, after) in zip(places, made.items(), strict=True):
                    need(self._unmasked(self.results[place], found[name]) is after)
                return _Cell(kind, found, places, [], dropouts)
        raise UnfitError

    def _unmasked(self, value: Value, before: Value | None) -> Value:
        """What a step makes, if there are lengths, of those sequences alone that are as long.

        Args:
          before: what shorter sequences keep; zeros if None.
        """
        found = next(_MASKED(value, {}), None)
        if found is None or self.places.get(found["index"]) != len(self.places) - 1:
            need(self.lengths is None)
            return value
        lengths, kept = self._outer(found["lengths"]), found["before"]
        need(self.lengths is (lengths if before else None))
        self.lengths = lengths
        need(kept is before if before else _is_zero(self._outer(kept)))
        unmasked: Value = found["after"]
        return unmasked

    def _outer(self, value: Value) -> Value:
        """The value outside of the scan that each step takes as it is."""
        place = self.places.get(value)
        return value if place is None else self.node.inputs[place]

    def _need_weights(self, cells: list[_Cell]) -> None:
        """Needs that nobody else takes the variables, which layers hold in another order."""
        made = [each for cell in cells for each in _weights(cell)]
        weights = {each.weight for each in made}
        need(len(weights) == len(made), not any(each.arranged for each in made))
        own = set(self.step.nodes())
        for node in self.program.all_nodes():
            need(node in own or all(value.weight not in weights for value in node.inputs))
        need(all(value.weight not in weights for value in self.program.outputs.values()))

    def replace(self, cells: list[_Cell]) -> None:
        users, taken = self.program.users(), {*self.program.outputs.values()}
        stacked, x = self.node.outputs[self.carried], self.node.inputs[self.carried]
        x = x.node.inputs[0] if _swaps(x.node) else self._swapped(x)
        turns = [
            turn
            for user in users.get(stacked, [])
            for turn in (users.get(user.outputs[0], []) if _swaps(user) else [user])
        ]
        back = len(cells) == 1 and all(self._turns(node) for node in (x.node, *turns))
        x = x.node.inputs[0] if back else x
        mask = self._mask(x)
        for cell in cells:
            for call in cell.before:
                x = self._dropped(x, call)
            states = [self.node.outputs[place] for place in cell.states]
            used = [bool(users.get(state)) or state in taken for state in states]
            wants = cell is not cells[-1] or users.get(stacked) or stacked in taken
            node = self._layer(cell, x, mask, bool(wants), any(used[not wants :]))
            if back:
                node.layer.options["go_backwards"] = True
            x = node.outputs[0]
            for state, made in zip(states, node.outputs[1:] or [x], strict=False):
                if len(node.outputs) > 1 or not wants:
                    self.program.replace(state, made)
            for call in cell.after:
                x = self._dropped(x, call)
        for turn in turns if back else ():
            self.program.replace(
                turn.outputs[0], computed(lambda x: tf.reverse(x, [1]), x, name=self.node.name)
            )
        for user in users.get(stacked, []):
            if _swaps(user):
                self.program.replace(user.outputs[0], x)
        if x.rank == 3:
            self.program.replace(stacked, self._swapped(x))

    def _layer(
        self, cell: _Cell, x: Value, mask: Value | None, sequences: bool, states: bool
    ) -> Node:
        cls, order, options = _CELLS[cell.kind]
        start = [self.node.inputs[place] for place in cell.states]
        units = b.sizes(start[0])[-1]
        weights = [made.weight for made in _weights(cell)]
        flags = {
            "return_sequences": sequences,
            "return_state": states,
            "zero_output_for_mask": mask is not None and sequences,
        }
        options = {**options, **{k: True for k, v in flags.items() if v}}
        options |= {"dtype": x.dtype} if x.dtype != "float32" else {}
        layer = g.Layer(cls, "", (), [units], options)
        if "recurrent_kernel" in cell.found:
            names = ("kernel", "bias", "recurrent_kernel")
            layer.bound = {f"cell.{k}": g.Bound([w]) for k, w in zip(names, weights, strict=True)}
        else:
            size = cell.found["kernel"].shape[0] - units
            forget = cell.found.get("forget_bias")  # TensorFlow adds it in each step
            gates = np.array([0, forget or 0, 0, 0], np.float32)
            added = np.repeat(gates, units) if forget else None
            layer.bound = {
                "cell.kernel": g.Bound(weights[::2], Gates(units, (0, size), order)),
                "cell.recurrent_kernel": g.Bound(weights[::2], Gates(units, (size, None), order)),
                "cell.bias": g.Bound(weights[1::2], Gates(units, None, order), added),
            }
        layer.call = {} if mask is None else {"mask": mask}
        inputs = [x, *layer.call.values()]
        if not all(map(_is_zero, start)):
            layer.call["initial_state"] = start if len(start) > 1 else start[0]
            inputs += start
        node = Node(g.LAYER, self.node.name, inputs, {"layer": layer}, place=self.node.place)
        node.output((*b.sizes(x)[: 1 + sequences], units), x.dtype)
        for _ in cell.states if states else ():
            node.output((*b.sizes(x)[:1], units), x.dtype)
        return node

    def _turns(self, node: Node) -> bool:
        """Whether an operation turns sequences of these lengths round."""
        if self.lengths is None:
            axes = node.inputs[1].constant if node.kind == "ReverseV2" else None
            return axes is not None and axes.tolist() == [1]
        return (
            node.kind == "ReverseSequence"
            and _uncast(node.inputs[1]) is _uncast(self.lengths)
            and (node.attrs["seq_dim"], node.attrs["batch_dim"]) == (1, 0)
        )

    def _dropped(self, x: Value, call: Call) -> Value:
        layer = g.Layer(call.name, "", (), call.args, call.options, call=call.call)
        name = "/".join([*self.node.scope, "dropout"])
        return Node(g.LAYER, name, [x], {"layer": layer}).output(x.shape, x.dtype)

    def _mask(self, x: Value) -> Value | None:
        """Where a sequence is as long, by its length."""
        if self.lengths is None:
            return None
        length = size_of(x, 1)
        known = [] if isinstance(length, int) else [length]

        def mask(lengths: tf.Tensor, size: tf.Tensor | None = None) -> tf.Tensor:
            steps = tf.range(length if size is None else tf.cast(size, lengths.dtype))
            return tf.cast(steps, lengths.dtype) < tf.expand_dims(lengths, -1)

        return computed(mask, self.lengths, *known, name=self.node.name)

    def _swapped(self, x: Value) -> Value:
        return computed(lambda x: tf.transpose(x, [1, 0, 2]), x, name=self.node.name)


def _weights(cell: _Cell) -> list[Any]:
    names = ("kernel", "bias", "last_kernel", "last_bias", "recurrent_kernel")
    return [cell.found[name] for name in names if name in cell.found]


def _is_zero(value: Value) -> bool:
    if value.node.kind == "Fill":
        value = value.node.inputs[1]
    return value.constant is not None and not value.constant.any()


def _uncast(value: Value) -> Value:
    return _uncast(value.node.inputs[0]) if value.node.kind == "Cast" else value


def _swaps(node: Node) -> bool:
    """Whether an operation exchanges the first two dimensions of three."""
    order = node.inputs[1].constant if node.kind == "Transpose" else None
    return order is not None and order.tolist() == [1, 0, 2]
