"""The dialect of a module: whether its `tensorflow` is the API of TensorFlow 1 or 2.

The names that a module uses show its dialect. `names/only_v1.txt` and `names/only_v2.txt` list the
names that only one API has; `tests/support/live_names.py` makes the lists. `tf.compat.v1.x` means
TensorFlow 1 in any module, so it shows nothing about `tf.x`.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib.resources
from collections.abc import Iterable, Iterator, Sequence

from tpu_estimator_compat.old_names.legacy.references import Form, Reference, references

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPAT_V1 = "tensorflow.compat.v1."
_OF_GRAPHS = frozenset(
    {
        "InteractiveSession",
        "Session",
        "placeholder",
        "placeholder_with_default",
        "sparse_placeholder",
        "train.MonitoredSession",
        "train.MonitoredTrainingSession",
        "train.Supervisor",
        "train.import_meta_graph",
    }
)
_SWITCHES = frozenset(
    {
        "disable_eager_execution",
        "disable_v2_behavior",
        "enable_eager_execution",
        "enable_v2_behavior",
        "executing_eagerly",
    }
)


class Dialect(enum.Enum):
    """A major version of TensorFlow's API."""

    V1 = 1
    V2 = 2


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the names that a module uses show.

    Attributes:
      path: the module's file.
      dialect: the dialect that the names show; None if they show none.
      names_api: whether the module uses `tensorflow` beyond its `compat`, `core` and `python`.
      makes_graphs: whether the module makes placeholders or sessions of `tensorflow.compat.v1`.
      python_2: builtins of Python 2 that the module uses.
    """

    path: str
    dialect: Dialect | None = None
    names_api: bool = False
    makes_graphs: bool = False
    python_2: tuple[str, ...] = ()


def shown(tree: ast.Module, path: str) -> Shown:
    found = references(tree)
    names = sorted({r.path.rpartition(".")[2] for r in found if r.form is Form.BUILTIN})
    graphs = makes_graphs(tree, found)
    return Shown(path, told(found), names_api(found), graphs, tuple(names))


def dialect(tree: ast.Module) -> Dialect:
    """The dialect of a module that runs alone; V2 if its names show none."""
    return told(references(tree)) or Dialect.V2


def told(found: Sequence[Reference]) -> Dialect | None:
    """The dialect that a module's references show; None if they show none.

    V1 if the module uses a name that only TensorFlow 1 has. Names that it only imports (`from
    tensorflow.contrib import tpu`, perhaps in a `try`) count for less: one name that only
    TensorFlow 2 has outweighs them.
    """
    if evidence_of_v1(found) is not None:
        return Dialect.V1
    only_v2 = any(is_only_in(Dialect.V2, name) for _, name in _of_bare_tensorflow(found))
    return Dialect.V2 if only_v2 else None


def evidence_of_v1(found: Iterable[Reference]) -> Reference | None:
    """The first reference that shows that the module means TensorFlow 1; None if there is none."""
    first_import = None
    only_v2 = False
    for reference, name in _of_bare_tensorflow(found):
        if is_only_in(Dialect.V1, name):
            # `contrib_tpu.TPUConfig` shows no more than the import of contrib_tpu.
            of_import = is_only_in(Dialect.V1, reference.base.partition(".")[2])
            if reference.form in (Form.ATTRIBUTE, Form.GETATTR) and not of_import:
                return reference
            first_import = first_import or reference
        elif is_only_in(Dialect.V2, name):
            only_v2 = True
    return None if only_v2 else first_import


def names_api(found: Iterable[Reference]) -> bool:
    """Whether a module names `tensorflow` itself, not only its `compat`, `core` or `python`."""
    return any(
        reference.path.partition(".")[0] == "tensorflow"
        and reference.path.split(".")[1:2] not in (["compat"], ["core"], ["python"])
        and reference.form is not Form.STRING
        for reference in found
    )


def makes_graphs(tree: ast.Module, found: Iterable[Reference]) -> bool:
    """Whether a module makes placeholders or sessions of `tensorflow.compat.v1`.

    False if they all belong to explicit graphs, or if the module switches or queries eager
    execution by `tensorflow.compat.v1`, or reads values of eager tensors.
    """
    of_v1 = [r for r in found if r.path.startswith(_COMPAT_V1)]
    names = {meaning(r.path, Dialect.V1)[1] for r in of_v1}
    if _OF_GRAPHS.isdisjoint(names) or not _SWITCHES.isdisjoint(names):
        return False
    if any(isinstance(node, ast.Attribute) and node.attr == "numpy" for node in ast.walk(tree)):
        return False
    own = _in_own_graphs(tree)
    return any(meaning(r.path, Dialect.V1)[1] in _OF_GRAPHS and r.node not in own for r in of_v1)


def meaning(path: str, bare: Dialect) -> tuple[Dialect, str]:
    """Splits a path into the API that it belongs to and the name in the API.

    `bare` is the meaning of `tensorflow` itself.

    >>> meaning("tensorflow.compat.v1.layers.dense", Dialect.V2)
    (<Dialect.V1: 1>, 'layers.dense')
    """
    parts = path.split(".")[1:]
    while parts[:2] in (["compat", "v1"], ["compat", "v2"]):
        bare = Dialect.V1 if parts[1] == "v1" else Dialect.V2
        del parts[:2]
    return bare, ".".join(parts)


def is_only_in(api: Dialect, name: str) -> bool:
    """Whether only `api` has a name such as `train.AdamOptimizer`, or a namespace above it."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in _only_in(api) for end in (1, 2, 3))


@functools.cache
def _only_in(api: Dialect) -> frozenset[str]:
    file = importlib.resources.files(__package__) / "names" / f"only_v{api.value}.txt"
    return frozenset(file.read_text(encoding="utf-8").split())


def _of_bare_tensorflow(found: Iterable[Reference]) -> Iterator[tuple[Reference, str]]:
    for reference in found:
        root, _, name = reference.path.partition(".")
        spells_api = name.startswith("compat.") or reference.form is Form.STRING
        if root == "tensorflow" and name and not spells_api:
            yield reference, name


def _in_own_graphs(tree: ast.Module) -> set[ast.AST]:
    """The nodes in `with tf.Graph().as_default():`, and in functions that only such code calls.

    Sessions with a graph argument, `tf.Session(graph=graph)`, count as well.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    found = {node for start in _starts(tree) for node in ast.walk(start)}
    while more := [f for f in functions if f not in found and _only_called(tree, f.name, found)]:
        found.update(node for function in more for node in ast.walk(function))
    return found


def _starts(tree: ast.Module) -> Iterator[ast.AST]:
    made = {
        _last(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_graph(node.value)
        for target in node.targets
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            of_graph = [_is_entered(item.context_expr, made) for item in node.items]
            if any(of_graph):  # the with's later items and its body
                yield from (item.context_expr for item in node.items[of_graph.index(True) :])
                yield from node.body
        elif isinstance(node, ast.Call) and any(word.arg == "graph" for word in node.keywords):
            yield node.func


def _is_entered(node: ast.expr, made: set[str]) -> bool:
    match node:
        case ast.Call(ast.Attribute(graph, "as_default"), []):
            return _is_graph(graph) or _last(graph) in made
    return False


def _is_graph(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "Graph"


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _only_called(tree: ast.Module, name: str, found: set[ast.AST]) -> bool:
    named = (ast.Name, ast.Attribute)
    uses = [node for node in ast.walk(tree) if isinstance(node, named) and _last(node) == name]
    return bool(uses) and found.issuperset(uses)
