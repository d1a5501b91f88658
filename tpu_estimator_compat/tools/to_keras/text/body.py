"""The body of a class: its members and statements, in which names are still tokens."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import linecache
import re
from collections.abc import Sequence
from typing import Any

import keras

from tpu_estimator_compat.tools.to_keras.classes import Part, taken
from tpu_estimator_compat.tools.to_keras.graph import (
    INPUT,
    LAYER,
    SIZES,
    SOURCES,
    Bound,
    Layer,
    Node,
    Program,
    Value,
    Weight,
)
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import (
    BRANCHES,
    FIRST_ALONE,
    LOOPS,
    expression,
)

TOKEN = re.compile(r"\b[vmf]_\d{6}\b")
_INLINE = 44
"""The longest expression that is written within another, names of two letters assumed."""
_DEEPEST = 3


@dataclasses.dataclass(eq=False)
class Member:
    """What a class makes in its constructor: a layer, an object of a class of the file, a weight.

    Attributes:
      token: stands for its name.
      name: what it may be called.
      cls: "layers.Dense", "add_weight", or a class of the file.
      arguments: of the constructor, by name.
      positional: how many of them are written without a name.
      several: for a list, the arguments of each element.
      bound: of a layer or weight, or of each of the list, what its weights are made of.
      parts: of a class of the file, the part or parts that it is.
    """

    token: str
    name: str
    cls: Any
    arguments: dict[str, Any]
    positional: int = 0
    several: list[dict[str, Any]] | None = None
    bound: list[dict[str, Bound]] = dataclasses.field(default_factory=list)
    parts: list[Part] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Statement:
    """Lines of code, and the tokens of the values they make; `start` is what a loop begins with."""

    lines: list[str]
    targets: list[str] = dataclasses.field(default_factory=list)
    start: str = ""

    def all_lines(self) -> list[str]:
        return [f"{self.targets[0]} = {self.start}", *self.lines] if self.start else self.lines


@dataclasses.dataclass
class Body:
    """Of one class: `params` are the call's, `hints` what a token's value may be called."""

    part: Part
    params: list[str] = dataclasses.field(default_factory=list)
    members: list[Member] = dataclasses.field(default_factory=list)
    statements: list[Statement] = dataclasses.field(default_factory=list)
    hints: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Made:
    """What a part is an object of: a class, with the constructor's arguments."""

    cls: Any
    arguments: dict[str, Any]


def path_within(part: Part, weight: Weight, made: dict[Part, Made]) -> str | None:
    """The attributes that lead from a part to a weight that is its own or of a layer in it."""
    for path, bound in made[part].cls.weights(part):
        if bound.weights == [weight] and bound.make is None:
            return path
    return None


class Builder:
    """Builds the body of a part, of whose inner parts the classes are known."""

    def __init__(self, part: Part, made: dict[Part, Made], inputs: dict[str, Value] | None = None):
        self.body = Body(part)
        self._made = made
        self._number = itertools.count()
        self._text: dict[Value, str] = {}
        self._objects: dict[Any, str] = {}
        self._uses: dict[Value, list[Node | Part | None]] = {}
        self._count(part.items, part.outputs)
        if inputs is None:
            self.body.params = [self._name_value(v, _hint_of_input(v)) for v in part.inputs]
            self._run(part.items)
            self._return([self.ref(v) for v in part.outputs])
        else:
            self._take_features(inputs)
            self._run(part.items)

    def _take_features(self, inputs: dict[str, Value]) -> None:
        for key, value in inputs.items():
            text = f'inputs["{key}"]'
            if len(self._uses.get(value, ())) > 1:
                token = self._name_value(value, key)
                self.body.statements.append(Statement([f"{token} = {text}"], [token]))
            else:
                self._text[value] = text

    def finish(self, returned: str) -> None:
        """Ends the whole model's body."""
        self._return([returned])

    def _return(self, texts: list[str]) -> None:
        self.body.statements.append(Statement([f"return {', '.join(texts)}"]))

    def _count(self, items: Sequence[Node | Part], outputs: Sequence[Value]) -> None:
        for item in items:
            for value in taken(item):
                users = self._uses.get(item.outputs[0], []) if _is(item, SIZES) else [item]
                self._uses.setdefault(value, []).extend(users or [item])
        for value in outputs:
            self._uses.setdefault(value, []).append(None)

    def _run(self, items: list[Node | Part]) -> None:
        while items:
            chain = self._chain(items)
            if len(chain) > 1:
                self._loop(chain)
            else:
                self._item(items[0])
            items = items[len(chain) :]

    def _item(self, item: Node | Part) -> None:
        node = item if isinstance(item, Node) else None
        used = [v for v in item.outputs if v in self._uses]
        alone = len(item.outputs) == 1
        if node is not None and node.kind in FIRST_ALONE:
            used, alone = item.outputs[:1], True
        if node is not None and node.kind in BRANCHES:
            text, alone = self._branches(node, used), len(used) == 1
        elif node is not None and node.kind in LOOPS:
            self._while(node)
            return
        else:
            text = self._expression(item)
        if len(used) == 1:
            text = text if alone else f"{text}[{item.outputs.index(used[0])}]"
            if self._fits_inside(item, used[0], text):
                self._text[used[0]] = text
            else:
                token = self._name_value(used[0], self._hint(item))
                self.body.statements.append(Statement([f"{token} = {text}"], [token]))
            return
        tokens = [self._name_value(v) for v in used]
        left = iter(tokens)
        written = [next(left) if v in used else "_" for v in item.outputs]
        if node is not None and node.kind in BRANCHES:
            written = tokens
        self.body.statements.append(Statement([f"{', '.join(written)} = {text}"], tokens))

    def _fits_inside(self, item: Node | Part, value: Value, text: str) -> bool:
        if _is(item, SIZES):
            return True
        users = self._uses[value]
        if len(users) > 1:
            return False
        user, length = users[0], len(TOKEN.sub("ab", text))
        if user is None:
            alone = len(self.body.part.outputs) == 1 and self.body.part.scope != ()
            return alone or length < _INLINE
        if isinstance(user, Node) and user.bodies:
            return user.kind in BRANCHES and user.inputs[0] is value and length < _INLINE
        if _is_call(item):
            return not _is_call(user) and length < _INLINE // 2
        return length < _INLINE and _depth(text) < _DEEPEST

    # What items are in text.

    def ref(self, value: Value) -> str:
        """The text of a value."""
        if value in self._text:
            return self._text[value]
        if value.weight is not None:
            self._text[value] = f"self.{self._path(value.weight)}"
            return self._text[value]
        array = value.constant
        assert array is not None, value
        if array.ndim == 0 and array.dtype.kind in "biufSU":
            return literal(array)
        return f'ops.convert_to_tensor({literal(array)}, "{value.dtype}")'

    def _expression(self, item: Node | Part) -> str:
        if isinstance(item, Part):
            return f"{self._object(item)}({', '.join(self.ref(v) for v in item.inputs)})"
        if item.kind != LAYER:
            return expression(item, [self.ref(v) for v in item.inputs])
        return f"{self._object(item)}({self._call(item)})"

    def _call(self, node: Node) -> str:
        options = {k: v for k, v in node.layer.call.items() if k != "training"}
        given = [self.ref(v) for v in node.inputs if v not in options.values()]
        for key, value in options.items():
            text = self.ref(value) if isinstance(value, Value) else literal(value)
            given.append(f"{key}={text}")
        return ", ".join(given)

    def _object(self, item: Node | Part) -> str:
        """The attribute of what an item calls."""
        thing = _thing(item)
        if thing not in self._objects:
            self._objects[thing] = f"self.{self._member([item]).token}"
        return self._objects[thing]

    def _member(self, items: Sequence[Node | Part]) -> Member:
        """A new attribute for what `items` call: one object, or a list of them."""
        first = items[0]
        token = f"m_{next(self._number):06d}"
        if isinstance(first, Part):
            made = self._made[first]
            member = Member(token, _base(first.scope[-1]), made.cls, made.arguments)
            member.parts = [each for each in items if isinstance(each, Part)]
            arguments = [self._made[each].arguments for each in member.parts]
        else:
            names = _parameters_of(first.layer.cls)[: len(first.layer.args)]
            layers = [each.layer for each in items if isinstance(each, Node)]
            arguments = [dict(zip(names, x.args, strict=True)) | x.options for x in layers]
            member = Member(token, self._layer_name(first.layer), first.layer.cls, arguments[0])
            member.positional, member.bound = len(names), [layer.bound for layer in layers]
        if len(items) > 1:
            member.several, member.name = arguments, _plural(member.name)
        self.body.members.append(member)
        return member

    def _layer_name(self, layer: Layer) -> str:
        """The author's; of the scope around where the layer's own is that of any such layer."""
        name, around = _base(layer.name), self.body.part.scope[-1:]
        general = _is_like(name, layer.cls)
        inner = layer.scope and layer.bound and _base(layer.scope[-1]) != _base((*around, "")[0])
        return _base(layer.scope[-1]) if general and inner else name

    def _path(self, weight: Weight) -> str:
        """The attribute of a weight, through layers and parts if it is theirs."""
        for item in self.body.part.items:
            if isinstance(item, Part):
                inner = path_within(item, weight, self._made)
                if inner is not None:
                    return f"{self._object(item)[5:]}.{inner}"
            elif item.kind == LAYER:
                for name, bound in item.layer.bound.items():
                    if bound.weights == [weight] and bound.make is None:
                        return f"{self._object(item)[5:]}.{name}"
        assert weight in self.body.part.weights, weight.name
        name = weight.name.split("/")[-1]
        if name == "table":
            name = weight.name.split("/")[-2]
        options: dict[str, Any] = {"shape": weight.shape}
        options |= {} if weight.dtype == "float32" else {"dtype": weight.dtype}
        options |= {} if weight.trainable else {"trainable": False}
        token = f"m_{next(self._number):06d}"
        member = Member(token, _base(name), "add_weight", options, bound=[{"": Bound([weight])}])
        self.body.members.append(member)
        return token

    # Loops over layers.

    def _chain(self, items: Sequence[Node | Part]) -> list[Node | Part]:
        """The calls of equal things from the first item on, each of what the one before gives."""
        chain, spot, again = [items[0]], None, None
        for item in items[1:]:
            last = chain[-1]
            place = self._follows(last, item)
            if place is None or spot not in (None, place):
                break
            same = _thing(item) == _thing(last)
            if again not in (None, same) or (not same and _thing(item) in self._objects):
                break
            spot, again = place, same
            chain.append(item)
        few = 2 if isinstance(items[0], Part) else 3
        known = _thing(items[0]) in self._objects and not again
        return chain if len(chain) >= few and not known else chain[:1]

    def _follows(self, last: Node | Part, item: Node | Part) -> int | None:
        """At which of its inputs `item` takes what `last` gives, all else being equal."""
        kind = self._kind(last)
        if kind is None or kind != self._kind(item) or len(last.outputs) != 1:
            return None
        if self._uses.get(last.outputs[0]) != [item] or len(last.inputs) != len(item.inputs):
            return None
        pairs = enumerate(zip(last.inputs, item.inputs, strict=True))
        differing = [i for i, (a, b) in pairs if a is not b]
        one = len(differing) == 1 and item.inputs[differing[0]] is last.outputs[0]
        return differing[0] if one else None

    def _kind(self, item: Node | Part) -> Any:
        if isinstance(item, Part):
            return self._made[item].cls
        if item.kind != LAYER:
            return None
        layer = item.layer
        return layer.cls, len(layer.args), *layer.options, *layer.bound, str(layer.call)

    def _loop(self, chain: list[Node | Part]) -> None:
        first, last = chain[0], chain[-1]
        (carried,) = (v for v, w in zip(first.inputs, chain[1].inputs, strict=True) if v is not w)
        start = self.ref(carried)
        token = self._name_value(last.outputs[0], _hint_of_place(first))
        self._text[carried], kept = token, self._text.get(carried)
        if _thing(first) == _thing(last):
            head, call = f"for _ in range({len(chain)}):", self._expression(first)
        else:
            member = self._member(chain)
            for i, item in enumerate(chain):
                self._objects[_thing(item)] = f"self.{member.token}[{i}]"
            each = f"v_{next(self._number):06d}"
            self.body.hints[each] = _base(member.name.removesuffix("s"))
            call = self._expression(first).replace(f"self.{member.token}[0]", each)
            head = f"for {each} in self.{member.token}:"
        if kept is not None:
            self._text[carried] = kept
        lines = [head, f"    {token} = {call}"]
        self.body.statements.append(Statement(lines, [token], start))

    # Control flow.

    def _function(
        self, program: Program, results: list[Value], params: list[Value], hint: str
    ) -> str:
        """The text of a function without a name, or the name of one that is defined before."""
        outside, self.body.statements = self.body.statements, []
        items = [node for node in program.nodes() if node.kind not in SOURCES]
        tokens = [self._name_value(v, _hint_of_input(v)) for v in params]
        self._count(items, results)
        self._run([*items])
        returned = ", ".join(self.ref(v) for v in results)
        inside, self.body.statements = self.body.statements, outside
        given = ", ".join(tokens)
        if not inside and len(results) == 1:
            return f"lambda{' ' * bool(given)}{given}: {returned}"
        name = f"f_{next(self._number):06d}"
        self.body.hints[name] = hint
        lines = [line for each in inside for line in each.all_lines()]
        lines = [
            f"def {name}({given}):",
            *(f"    {each}" for each in [*lines, f"return {returned}"]),
        ]
        self.body.statements.append(Statement(lines, [name]))
        return name

    def _branches(self, node: Node, used: list[Value]) -> str:
        condition = self.ref(node.inputs[0])
        functions = []
        for key in ("then_branch", "else_branch"):
            body = node.bodies[key]
            for position, value in body.inputs.items():
                self._text[value] = self.ref(node.inputs[1 + int(position)])
            results = [body.outputs[str(node.outputs.index(v))] for v in used]
            functions.append(self._function(body, results, [], key))
        return f"ops.cond({condition}, {', '.join(functions)})"

    def _while(self, node: Node) -> None:
        condition, body = node.bodies["cond"], node.bodies["body"]
        carried = self._carried(node)
        for each in (condition, body):
            for position, value in each.inputs.items():
                if int(position) not in carried:
                    self._text[value] = self.ref(node.inputs[int(position)])
        start = [self.ref(node.inputs[i]) for i in carried]
        texts = []
        for each, hint in ((condition, "condition"), (body, "body")):
            results = (
                [each.outputs[str(i)] for i in carried] if each is body else [each.outputs["0"]]
            )
            params = [each.inputs[str(i)] for i in carried]
            texts.append(self._function(each, results, params, hint))
        tokens = [self._name_value(node.outputs[i]) for i in carried]
        for i, value in enumerate(node.outputs):
            if i not in carried:
                self._text[value] = self.ref(node.inputs[i])
        given = start[0] if len(start) == 1 else f"({', '.join(start)})"
        text = f"{', '.join(tokens)} = ops.while_loop({', '.join(texts)}, {given})"
        self.body.statements.append(Statement([text], tokens))

    def _carried(self, node: Node) -> list[int]:
        """The values that change in a loop and that it or others need."""
        condition, body = node.bodies["cond"], node.bodies["body"]
        changing = {
            i for i in range(len(node.inputs)) if body.outputs[str(i)] is not body.inputs[str(i)]
        }
        needed = {i for i in changing if node.outputs[i] in self._uses}
        values = set(Program({}, dict(condition.outputs)).nodes())
        while True:
            more = {i for i in changing if condition.inputs[str(i)].node in values}
            results = {str(i): body.outputs[str(i)] for i in needed | more}
            inside = set(Program({}, results).nodes())
            more |= {i for i in changing if body.inputs[str(i)].node in inside}
            if more <= needed:
                return sorted(needed)
            needed |= more

    # Names.

    def _name_value(self, value: Value, hint: str = "") -> str:
        token = f"v_{next(self._number):06d}"
        self._text[value] = token
        if hint:
            self.body.hints[token] = hint
        return token

    def _hint(self, item: Node | Part) -> str:
        hint = _hint_of_place(item)
        if not hint and _is_call(item):
            thing = self._objects[_thing(item)]
            member = next(m for m in self.body.members if m.token in thing)
            hint = "" if _is_like(member.name, member.cls) else f"?{member.name}"
        return hint


def _is(item: Node | Part | None, kind: str) -> bool:
    return isinstance(item, Node) and item.kind == kind


def _is_call(item: Node | Part | None) -> bool:
    return isinstance(item, Part) or _is(item, LAYER)


def _thing(item: Node | Part) -> Any:
    """What is called: equal for two calls of one layer or part."""
    if isinstance(item, Part):
        return item.identity
    return item.layer if item.kind == LAYER else item


def _is_like(name: str, cls: Any) -> bool:
    """Whether a name says no more than the class."""
    return name.replace("_", "") in str(cls).split(".")[-1].lower()


def _depth(text: str) -> int:
    levels = itertools.accumulate((c in "([") - (c in ")]") for c in text)
    return max(levels, default=0)


def _parameters_of(cls: str) -> list[str]:
    found = getattr(keras.layers, cls.removeprefix("layers."), None)
    return [*inspect.signature(found).parameters] if found else [str(i) for i in range(9)]


def default_of(cls: Any, argument: str) -> Any:
    """What a layer of Keras takes for an argument that is not given."""
    found = getattr(keras.layers, str(cls).removeprefix("layers."), None)
    parameters = inspect.signature(found).parameters if found else {}
    return parameters[argument].default if argument in parameters else inspect.Parameter.empty


def _base(name: str) -> str:
    """A scope's name in snake case, without its number."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", re.sub(r"\W", "_", name))
    return re.sub(r"_?\d*$", "", name).strip("_").lower() or "part"


def _plural(name: str) -> str:
    return name if name.endswith("s") else f"{name}s"


def _hint_of_input(value: Value) -> str:
    """For an argument of a call: a feature's name, or a weight's."""
    if value.weight is not None:
        return _base(value.weight.name.split("/")[-1])
    if value.node.kind == INPUT and not value.node.attrs["key"].isdigit():
        return str(value.node.attrs["key"])
    return _hint_of_place(value.node)


def _hint_of_place(item: Node | Part) -> str:
    """The variable to which the author's line gives an operation's value."""
    place = item.place if isinstance(item, Node) else ""
    file, _, number = place.rpartition(":")
    line = linecache.getline(file, int(number)) if file and number.isdigit() else ""
    found = re.match(r"\s*([A-Za-z_]\w*) = ", line)
    return found[1].lower() if found else ""
