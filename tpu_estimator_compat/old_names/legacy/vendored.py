"""Replaces a script's own copy of TensorFlow 1's `tpu_estimator.py` by this package.

Such a copy needs the internals of TensorFlow 1. Its definitions identify it, not its name. Changes
that the copy's owner made have no effect, and a log line says so; arguments that the owner added
are refused, unless they have their default.
"""

from __future__ import annotations

import ast
import inspect
import logging
import types
from collections.abc import Callable
from typing import Any

from tpu_estimator_compat.old_names.legacy import namespaces, overlay

_ORIGINAL = "python.tpu.tpu_estimator"
_ESTIMATOR, _SPEC = "TPUEstimator", "TPUEstimatorSpec"
_MARK = f"class {_ESTIMATOR}(".encode()
_ENOUGH = 5  # internal names; modules that wrap or extend TPUEstimator define none


def copy_of_original(source: bytes) -> ast.Module | None:
    """The syntax tree of a module that is a copy of the original; None for any other module."""
    if _MARK not in source:
        return None
    tree = ast.parse(source)
    original, names = overlay.module(namespaces.v1(), _ORIGINAL), _defined(tree)
    inner = [n for n in names if isinstance(getattr(original, n, None), overlay.Refused)]
    return tree if _ESTIMATOR in names and len(inner) >= _ENOUGH else None


def stand_in(module: types.ModuleType, tree: ast.Module) -> None:
    """Fills the module of a copy, which has legacy builtins, with this package's names."""
    original = overlay.module(namespaces.v1(), _ORIGINAL)
    path = str(module.__dict__.get("__file__"))
    defined = _defined(tree)
    public = [name for name in {**defined, **_assigned(tree)} if not name.startswith("_")]
    missing = [name for name in public if not hasattr(original, name)]
    module.__dict__.update({n: getattr(original, n) for n in public if n not in missing})
    changed = list(missing)
    for name, method in ((_ESTIMATOR, "__init__"), (_SPEC, "__new__")):
        if name in defined:
            ours, methods = getattr(original, name), _defined(defined[name])
            changed += [f"{name}.{m}" for m in methods if m[0] != "_" and not hasattr(ours, m)]
        if name in defined and method in methods:
            call = _Call(ours, method, methods[method], path)
            changed += [f"argument {argument} of {name}" for argument in call.added]
            module.__dict__[name] = call.of_class()
    module.__dict__["__getattr__"] = _rest(module, original, tree, missing)
    logging.getLogger("tensorflow").warning(
        "%s is a copy of TensorFlow's tpu_estimator.py. tpu_estimator_compat's TPUEstimator "
        "replaces it: changes that the copy's owner made have no effect. Names of the copy that "
        "tpu_estimator_compat does not have: %s.",
        path,
        ", ".join(changed) or "none",
    )


def _rest(
    module: types.ModuleType, original: Any, tree: ast.Module, missing: list[str]
) -> Callable[[str], Any]:
    """`__getattr__` for the module of a copy: its imports, and private names of the original.

    `missing`: the copy's public names that this package lacks.
    """
    path = str(module.__dict__.get("__file__"))
    imports = {
        alias.asname or alias.name.partition(".")[0]: node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name in missing:
            raise NotImplementedError(
                f"tpu_estimator_compat replaces {path}, a copy of TensorFlow's tpu_estimator.py, "
                f"and has no {name}. If {name} is the work of the copy's owner, move it to a "
                "module of its own."
            )
        if name in imports:
            exec(compile(ast.Module([imports[name]], []), path, "exec"), module.__dict__)
            return module.__dict__[name]
        return getattr(original, name)

    return get


class _Call:
    """Converts arguments of a copy's class: TensorFlow releases differ, and owners add arguments.

    `ours` is the class that replaces it, `definition` its `__init__` or `__new__` in the copy.
    """

    def __init__(self, ours: type, method: str, definition: ast.stmt, path: str):
        assert isinstance(definition, ast.FunctionDef)
        arguments = definition.args
        self._ours, self._method, self._path = ours, method, path
        self._names = [a.arg for a in [*arguments.posonlyargs, *arguments.args][1:]]
        unset = [*[None] * len(self._names), *arguments.defaults][-len(self._names) :]
        names = [*self._names, *(a.arg for a in arguments.kwonlyargs)]
        given = dict(zip(names, [*unset, *arguments.kw_defaults], strict=True))
        known = inspect.signature(ours).parameters
        self.added = {name: node for name, node in given.items() if name not in known}

    def of_class(self) -> type:
        theirs = getattr(self._ours, self._method)

        def call(first: Any, *args: Any, **kwargs: Any) -> Any:
            return theirs(first, **self._arguments(args, kwargs))

        names = {self._method: call, "__doc__": self._ours.__doc__, "__module__": __name__}
        return types.new_class(self._ours.__name__, (self._ours,), {}, lambda n: n.update(names))

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name; NotImplementedError if an argument that the owner added is set."""
        name = self._ours.__name__
        if len(args) > len(self._names):
            raise TypeError(
                f"{name} of {self._path} takes {len(self._names)} arguments, got {len(args)}."
            )
        by_place = dict(zip(self._names, args, strict=False))
        twice = sorted(by_place.keys() & kwargs.keys())
        if twice:
            raise TypeError(f"{name} got several values for {', '.join(twice)}.")
        found = {**by_place, **kwargs}
        wanted = [a for a in self.added if a in found and not self._is_default(a, found.pop(a))]
        if wanted:
            raise NotImplementedError(
                f"{name}({', '.join(wanted)}=...): the owner of {self._path} added this to a copy "
                "of TensorFlow's tpu_estimator.py. tpu_estimator_compat, which replaces that "
                "copy, does not have it. Leave it out, if the script can do without. State that "
                "goes from step to step, such as a cache of activations, can be kept in variables "
                "that model_fn makes, and assigns before its train_op."
            )
        return found

    def _is_default(self, argument: str, value: Any) -> bool:
        node = self.added[argument]
        return isinstance(node, ast.Constant) and value is node.value


def _defined(node: ast.stmt | ast.Module) -> dict[str, ast.stmt]:
    kinds = (ast.ClassDef, ast.FunctionDef)
    body = node.body if isinstance(node, (ast.ClassDef, ast.Module)) else []
    return {part.name: part for part in body if isinstance(part, kinds)}


def _assigned(tree: ast.Module) -> dict[str, ast.stmt]:
    return {
        target.id: node
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
