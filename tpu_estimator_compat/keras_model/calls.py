"""The calls of estimators and of their Keras models, and who observes them.

An observer is a function of a `Call`. It may change the call's arguments, makes the call, and
returns its result or another. So the dry run shortens a script's calls, preflight compiles in place
of one, and compare records them; estimators log the ends of their calls.

This module needs nothing but Python 3.7: compare loads it in the original's environment, too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable)

observers: list[Callable[[Call], Any]] = []
"""Each makes the calls of those before it, in all threads."""

innermost: dict[str, Callable[[Call], Any]] = {}
"""The observers that always make the calls of a name, within all others."""

_observed: set[Any] = set()


class Call:
    """A call of an observed function.

    Attributes:
      name: the method's, such as "train"; "keras_model().fit" for a Keras model's.
      owner: the estimator or Keras model; None for a function that is no method.
      arguments: the other arguments by name; observers may change them.
      at_error: is given the error that ends the call.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        given: inspect.BoundArguments,
        by: list[Callable[[Call], Any]],
    ):
        self.name = name
        self.arguments = dict(given.arguments)
        for key, parameter in given.signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.arguments.update(self.arguments.pop(key, {}))
        self._function = function
        self._left = by
        self._owner = [self.arguments.pop("self")] if "self" in self.arguments else []
        self.owner: Any = self._owner[0] if self._owner else None
        self.at_error: Callable[[BaseException], None] = lambda error: None

    def make(self) -> Any:
        """Makes the call, or has the next observer make it; returns the result."""
        if self._left:
            return self._left.pop(0)(self)
        return self._function(*self._owner, **self.arguments)


def observed(function: Function, name: str = "", like: Any = None) -> Function:
    """The function, whose calls are observed; `like` declares the arguments by name.

    Where a method calls that of a base class, only the first is observed.
    """
    name = name or function.__name__
    signature = inspect.signature(like or function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        by = [*observers, *([innermost[name]] if name in innermost else [])]
        if not by or (args and _is_of_base(call, args[0])):
            return function(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises an error with the function's name
        made = Call(name, function, given, by)
        try:
            return made.make()
        except BaseException as error:
            made.at_error(error)
            raise

    _observed.add(call)
    return call  # type: ignore[return-value]


def of_keras(like: Any) -> Callable[[Function], Function]:
    """Observes a Keras model's method, with the arguments of Keras' own."""
    return functools.partial(observed, name=f"keras_model().{like.__name__}", like=like)


def _is_of_base(call: Any, owner: Any) -> bool:
    """Whether the class of `owner` has another observed method of this name before this one."""
    found = (vars(kind).get(call.__name__) for kind in type(owner).__mro__)
    return next((each for each in found if each in _observed), call) is not call


@contextlib.contextmanager
def observing(observer: Callable[[Call], Any]) -> Iterator[None]:
    """A context in which `observer` makes the calls, in all threads."""
    observers.insert(0, observer)
    try:
        yield
    finally:
        observers.remove(observer)
