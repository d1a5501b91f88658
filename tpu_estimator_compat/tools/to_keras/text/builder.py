"""Builds the body of a class: what it makes, and the statements that call it."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import keras

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.classes import Part, bound_weights, taken, with_bodies
from tpu_estimator_compat.tools.to_keras.expressions import called, dtype_of
from tpu_estimator_compat.tools.to_keras.graph import Bound, Layer, Node, Program, Value, Weight
from tpu_estimator_compat.tools.to_keras.layers.naming import base_of, name_of
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import FIRST_ALONE, expression
from tpu_estimator_compat.tools.to_keras.text import flow
from tpu_estimator_compat.tools.to_keras.text.body import (
    TOKEN,
    Body,
    Member,
    Statement,
    hint_of_place,
    indexed,
    is_like,
)

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.to_keras.text.equal import Class

_INLINE = 44
"""The longest expression that is written within another, names of two letters assumed."""
_DEEPEST = 3
_GIVEN = ("carry", "element")
_CALLS = ("Part", g.LAYER)


class Builder:
    """Builds the body of a part, of whose inner parts the classes are known."""

    def __init__(self, part: Part, made: dict[Part, Class]):
        self.body = Body(part)
        self.texts: dict[Value, str] = {}
        self.made = made
        self._number = itertools.count()
        self.objects: dict[Any, str] = {}
        self._uses: dict[Value, list[Node | None]] = {}
        self._gives_one = len(part.outputs) == 1 and bool(part.scope)

    def as_part(self) -> Body:
        """The body where inputs are the call's arguments."""
        part = self.body.part
        self._count(part.items, part.outputs)
        self.body.params = [self.token(v, _hint_of_input(v)) for v in part.inputs]
        self._run(part.items)
        self._return(", ".join(self.ref(v) for v in part.outputs))
        return self.body

    def as_model(self, program: Program) -> Body:
        """That of the whole model, with a dict of features."""
        part = self.body.part
        self._count(part.items, list(program.outputs.values()))
        for key, value in program.inputs.items():
            self.texts[value] = f"features[{literal(key)}]"
            if len(self.users(value)) > 1:
                self.assign([[value]], self.texts[value], f"={key}")
        self._run(part.items)
        returned = [f"{literal(k)}: {self.ref(v)}" for k, v in program.outputs.items()]
        self._return(f"{{{', '.join(returned)}}}")
        return self.body

    def as_method(self, program: Program, ends: list[str]) -> Body:
        """Another method of the whole model, of a program on its outputs.

        Args:
          ends: the last lines, in which "{loss}" stands for the output "loss".
        """
        sources = [*program.inputs.values(), *program.labels.values()]
        taken = set(re.findall(r"\w+", " ".join(v.node.attrs["text"] for v in sources)))
        self.body = Body(self.body.part, taken, members=self.body.members)
        items: list[Node] = [n for n in program.nodes() if n.kind not in g.SOURCES]
        self._uses, self._gives_one = {}, len(program.outputs) == 1
        self._count(items, list(program.outputs.values()))
        for value in sources:
            self.texts[value] = value.node.attrs["text"]
        self._run(items)
        given = {name: self.ref(value) for name, value in program.outputs.items()}
        self.body.statements += [Statement([line.format(**given)]) for line in ends]
        return self.body

    def _return(self, text: str) -> None:
        self.body.statements.append(Statement([f"return {text}"]))

    def users(self, value: Value) -> list[Node | None]:
        """What takes a value: None for the results."""
        return self._uses.get(value, [])

    def _count(self, items: Sequence[Node], outputs: Sequence[Value]) -> None:
        for item in reversed(items):
            for value in taken(item):
                users = self.users(item.outputs[0]) if item.kind == g.SIZES else [item]
                self._uses.setdefault(value, []).extend(users)
        for value in outputs:
            self._uses.setdefault(value, []).append(None)

    def _run(self, items: Sequence[Node]) -> None:
        items = list(items)
        while items:
            chain = flow.chain_of(self, items)
            if len(chain) > 1:
                flow.write_chain(self, chain)
            else:
                self._item(items[0])
            items = items[len(chain) :]

    def _item(self, item: Node) -> None:
        if item.kind in _FLOW:
            _FLOW[item.kind](self, item)
            return
        text = self.expression(item)
        one = len(item.outputs) == 1 or item.kind in FIRST_ALONE
        used = item.outputs[:1] if one else [v for v in item.outputs if self.users(v)]
        if len(used) > 1:
            self.assign([[v if v in used else None] for v in item.outputs], text)
            return
        text = text if one else f"{text}[{item.outputs.index(used[0])}]"
        if self._fits_inside(item, used[0], text):
            self.texts[used[0]] = text
        else:
            self.assign([used], text, self._hint(item))

    def assign(self, groups: Sequence[Sequence[Value | None]], text: str, hint: str = "") -> None:
        """A statement that names values, in groups as the expression gives them."""
        values = [value for group in groups for value in group if value is not None]
        tokens = {value: self.token(value, hint) for value in values}
        names = [
            [tokens[v] if v in tokens and self.users(v) else "_" for v in each] for each in groups
        ]
        left = ", ".join(flow.tuple_of(group) for group in names)
        left = "_" if not re.search(r"[^_, ()]", left) else left
        made = [token for token in tokens.values() if token in left]
        self.body.statements.append(Statement([f"{left} = {text}"], made))

    def _fits_inside(self, item: Node, value: Value, text: str) -> bool:
        """Whether a value is written where it is used, instead of being named."""
        short = TOKEN.sub("ab", text).replace(", training=training", "")
        users, length = self.users(value), len(short)
        if item.kind == g.SIZES or len(users) != 1:
            return item.kind == g.SIZES
        if item.kind in _CALLS:
            weights = bound_weights(item.nodes())
            if any(v.weight in weights for v in self._uses if v.weight is not None):
                return False  # the call makes a weight that others read
        user = users[0]
        if user is None:
            return self._gives_one or length < _INLINE
        if user.bodies:
            return user.kind == g.BRANCH and user.inputs[0] is value and length < _INLINE
        if item.kind in _CALLS:
            return user.kind not in _CALLS and length < _INLINE // 2
        depths = itertools.accumulate((c in "([") - (c in ")]") for c in text)
        return length < _INLINE and max(depths) < _DEEPEST

    def ref(self, value: Value) -> str:
        """The text of a value."""
        if value in self.texts:
            return self.texts[value]
        if value.weight is not None:
            thing = value.node.attrs.get("bound", value.weight)
            return self._find(thing) or self._weight(value.weight)
        array = value.constant
        assert array is not None, value
        if value.dtype == "string":
            return f"tf.constant({literal(array.tolist())})"
        if array.ndim == 0 and array.dtype.kind in "biuf":
            return literal(array)
        if array.size > 1 and (array == array.flat[0]).all():
            filled = {0: "zeros", 1: "ones"}.get(array.flat[0].item())
            given = [literal(array.shape), *([] if filled else [literal(array.flat[0])])]
            return called(filled or "full", *given, dtype=dtype_of(value))
        return f'ops.convert_to_tensor({literal(array)}, "{value.dtype}")'

    def expression(self, item: Node) -> str:
        if isinstance(item, Part):
            given = [self.ref(v) for v in item.inputs]
            given += ["training=training"] if self.made[item].trains else []
            return f"{self.object(item)}({', '.join(given)})"
        if item.kind != g.LAYER:
            return expression(item, [self.ref(v) for v in item.inputs])
        return f"{self.object(item)}({self._call(item)})"

    def _call(self, node: Node) -> str:
        """The arguments of a layer's call, `training` too: Keras on JAX does not pass it on."""
        options = node.layer.call
        named = [v for given in options.values() for v in (given if _is_list(given) else [given])]
        given = [self.ref(v) for v in node.inputs if v not in named]
        for key, value in options.items():
            texts = [
                self.ref(v) if isinstance(v, Value) else literal(v)
                for v in (value if _is_list(value) else [value])
            ]
            text = ", ".join(texts)
            given.append(f"{key}=[{text}]" if _is_list(value) else f"{key}={text}")
        return ", ".join(given)

    def object(self, item: Node) -> str:
        """The attribute of what an item calls."""
        thing = item.thing
        if thing not in self.objects:
            found = self._find(thing) if isinstance(thing, Layer) else None
            self.objects[thing] = found or f"self.{self.member([item]).token}"
        return self.objects[thing]

    def _find(self, thing: Layer | Weight | Bound) -> str | None:
        """Where a layer of a part within is, or a weight of a layer or of a part, or one in it."""
        for item in with_bodies(self.body.part.items):
            things: Iterable[tuple[str, Layer | Weight]] = ()
            if isinstance(item, Part):
                things = self.made[item].things(item)
            elif item.kind == g.LAYER and item.layer is not thing:
                things = [("", item.layer)]
            for path, each in things:
                bound = each.bound if isinstance(each, Layer) else {}
                names = [name for name, found in bound.items() if thing in (found, *found.weights)]
                if each is thing or names:
                    if item.kind == g.LAYER and item.layer not in self.objects:
                        member = self.member([item])  # whose constructor makes its weights
                        member.built = item.inputs[0].shape
                        self.objects[item.layer] = f"self.{member.token}"
                    steps = [self.object(item), path, *names[:1]]
                    return indexed(".".join(filter(None, steps)))
        return None

    def member(self, items: Sequence[Node]) -> Member:
        """A new attribute for what `items` call: one object, or a list of them."""
        if parts := [each for each in items if isinstance(each, Part)]:
            made = self.made[parts[0]]
            arguments = [made.arguments(each) for each in parts]
            member = self._add(name_of(parts[0].scope_name), made, [*parts], arguments)
        else:
            layers = [each.layer for each in items]
            cls, positional = layers[0].cls, len(layers[0].args)
            names = ([*parameters_of(cls)] or [str(i) for i in range(positional)])[:positional]
            arguments = [dict(zip(names, x.args, strict=True)) | x.options for x in layers]
            member = self._add(self._layer_name(layers[0]), cls, [*layers], arguments)
            member.positional = positional
        if len(items) > 1:
            member.name = f"{base_of(member.name).removesuffix('s')}s"
        return member

    def _add(self, name: str, cls: Any, things: list[Any], arguments: list[Any]) -> Member:
        member = Member(f"m_{next(self._number):06d}", name, cls, things, arguments)
        self.body.members.append(member)
        return member

    def _layer_name(self, layer: Layer) -> str:
        """The author's; the scope's where it has this layer alone, whose name says nothing."""
        name = name_of(layer.name)
        if not (is_like(base_of(name), layer.cls) and layer.scope and layer.bound):
            return name
        own = [item.layer for item in self.body.part.items if item.kind == g.LAYER]
        others = {each for each in own if each is not layer and each.bound}
        around = [*self.body.part.scope[-1:], *(each.name for each in others)]
        alone = all(each.scope[: len(layer.scope)] != layer.scope for each in others)
        if not alone or layer.scope[-1:] == self.body.part.scope[-1:]:
            return name
        scope = name_of(layer.scope[-1])
        return f"{scope}_{name}" if layer.scope[-1] in around else scope

    def _weight(self, weight: Weight) -> str:
        """The attribute for a weight that no layer has."""
        if weight not in self.objects:
            options: dict[str, Any] = {"shape": weight.shape}
            options |= {} if weight.dtype == "float32" else {"dtype": weight.dtype}
            options |= {} if weight.trainable else {"trainable": False}
            name = [s for s in weight.name.split("/") if not re.match(r"part_\d+$", s)][-1]
            member = self._add(name_of(name), "add_weight", [weight], [options])
            self.objects[weight] = f"self.{member.token}"
        return self.objects[weight]

    def function(
        self, results: list[list[Value]], params: list[list[Value | None]], hint: str
    ) -> str:
        """The text of a local function: a lambda, or the name of one that is defined before.

        Args:
          results, params: in groups, of which each is one result or parameter.
        """
        outside, self.body.statements = self.body.statements, []
        given: list[str] = []
        for group in params:
            tokens = [self.token(v, _hint_of_input(v) if v else "") for v in group]
            given.append(tokens[0] if len(tokens) == 1 else self.token(None, _GIVEN[len(given)]))
            if len(tokens) > 1:
                unpack = Statement([f"{', '.join(tokens)} = {given[-1]}"], tokens)
                self.body.statements.append(unpack)
        values = [value for group in results for value in group]
        inner = Program({}, {str(i): value for i, value in enumerate(values)}).nodes()
        items = [node for node in inner if node.kind not in g.SOURCES]
        self._count(items, values)
        one, self._gives_one = self._gives_one, len(values) == 1
        self._run(items)
        self._gives_one = one
        returned = ", ".join(flow.tuple_of([self.ref(v) for v in group]) for group in results)
        inside, self.body.statements = self.body.statements, outside
        if not inside and len(results) == 1 and len(given) < 2:
            return f"lambda{' ' * len(given)}{''.join(given)}: {returned}"
        name = f"f_{next(self._number):06d}"
        self.body.hints[name] = hint
        inside.append(Statement([f"return {returned}"]))
        head = f"def {name}({', '.join(given)}):"
        self.body.statements.append(Statement([head], [name], params=given, inner=inside))
        return name

    def token(self, value: Value | None, hint: str = "") -> str:
        token = f"v_{next(self._number):06d}"
        if value is not None:
            self.texts[value] = token
        if hint:
            self.body.hints[token] = hint
        return token

    def _hint(self, item: Node) -> str:
        hint = hint_of_place(item)
        if not hint and item.kind in _CALLS:
            thing = self.objects[item.thing]
            member = next(m for m in self.body.members if m.token in thing)
            hint = "" if is_like(base_of(member.name), member.cls) else f"?{member.name}"
        return hint


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Value) for each in value)


@functools.cache
def parameters_of(cls: Any) -> dict[str, Any]:
    """The arguments of a layer of Keras, with what it takes where one is not given."""
    found = getattr(keras.layers, str(cls).partition("layers.")[2], None)
    parameters = inspect.signature(found).parameters if found else {}
    return {name: parameter.default for name, parameter in parameters.items()}


def _hint_of_input(value: Value) -> str:
    """For an argument of a call: a feature's name, or a weight's."""
    if value.weight is not None:
        return "=" + base_of(value.weight.name.split("/")[-1])
    if value.node.kind == g.INPUT and not value.node.attrs["key"].isdigit():
        return f"={value.node.attrs['key']}"
    return hint_of_place(value.node)


_FLOW = {g.BRANCH: flow.branches, g.LOOP: flow.loop, g.SCAN: flow.scan}
