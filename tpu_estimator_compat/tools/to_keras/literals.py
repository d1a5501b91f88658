"""Python text of numbers and arrays, as an author would write them."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import Code, Value


def literal(value: Any) -> str:
    """The text of a number, string, array, tuple, dict or `Code`; arrays become tuples.

    Of a float32 it is the shortest that gives the same float32.
    """
    if isinstance(value, Code):
        return value.text
    if isinstance(value, np.ndarray):
        value = value[()] if value.ndim == 0 else tuple(value)
    if isinstance(value, (np.bool_, np.integer)):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # in double quotes, as a formatter writes it
    if isinstance(value, (float, np.floating)):
        return _float(value)
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(literal, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _float(value: Any) -> str:
    if not math.isfinite(value):
        return f'float("{value}")'
    if not isinstance(value, np.floating) and float(np.float32(value)) == value:
        value = np.float32(value)  # an attribute of an operation is one
    number = float(str(value))
    if not number.is_integer() or abs(number) >= 1e16:
        return repr(number)
    digits = repr(int(number))
    first = digits.rstrip("0")
    zeros = len(digits) - len(first)
    return f"{first}e{zeros}" if zeros > 4 and len(first) <= 2 - (number > 0) else f"{digits}.0"


def argument(value: Value, text: str) -> str:
    """The text of an argument such as an axis or a shape: a Python number or tuple if constant."""
    return text if value.constant is None else literal(value.constant)


OPERATORS = {"**": 70, "*": 50, "/": 50, "//": 50, "%": 50, "+": 40, "-": 40}
OPERATORS |= {"<": 20, "<=": 20, ">": 20, ">=": 20}
_BINDS = {"Pow": 70, "Add": 40, "Sub": 40, "BitAnd": 32, "BitXor": 31, "BitOr": 30}


def precedence(text: str) -> int:
    """How strongly an expression binds: 100 for a name, a call or a number, less for `a + b`."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp):
        return _BINDS.get(type(node.op).__name__, 50)
    if isinstance(node, ast.UnaryOp):
        return 10 if isinstance(node.op, ast.Not) else 60
    if isinstance(node, ast.Compare):
        return 20
    return 5 if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda)) else 100


def infix(left: str, operator: str, right: str) -> str:
    """`left operator right`, with the parentheses that it needs."""
    binds = OPERATORS[operator]
    comparison = binds == 20
    if precedence(left) < binds + (comparison or operator == "**"):
        left = f"({left})"
    if precedence(right) <= binds - (operator in ("+", "*") and right.isidentifier()):
        right = f"({right})"
    return f"{left} {operator} {right}"


def primary(text: str) -> str:
    """An expression that an index or attribute may follow."""
    return text if precedence(text) == 100 and not text[0].isdigit() else f"({text})"
