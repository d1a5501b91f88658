"""The sizes that a reader can count on: no file over 400 lines, no function over 50."""

import ast
import pathlib

import tpu_estimator_compat

[_package] = tpu_estimator_compat.__path__
SOURCES = sorted(pathlib.Path(_package).rglob("*.py"))
MOST_OF_FILE, MOST_OF_FUNCTION = 400, 50


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_no_file_is_longer():
    assert len(SOURCES) > 400
    sizes = {path: len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: size for path, size in sizes.items() if size > MOST_OF_FILE} == {}


def test_no_function_is_longer():
    longer = [
        f"{path}:{node.lineno} {node.name}, {lines(node)} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and lines(node) > MOST_OF_FUNCTION
    ]
    assert longer == []
