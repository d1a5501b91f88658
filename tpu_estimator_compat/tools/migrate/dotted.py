"""Dotted names in libcst."""

from __future__ import annotations

import functools

import libcst as cst


def dotted(path: str) -> cst.Name | cst.Attribute:
    first, *others = path.split(".")
    name: cst.Name | cst.Attribute = cst.Name(first)
    return functools.reduce(lambda n, part: cst.Attribute(n, cst.Name(part)), others, name)
