"""Drives a published script whose package left its flags and its last two lines out.

`drive.py MODULE --name=value ...` defines a flag for every argument, of the type that its value has
in Python, and calls the module's `main`.
"""

import ast
import importlib
import sys

import tensorflow as tf


def define(name: str, value: str) -> None:
    try:
        typed = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        typed = value
    kinds = {bool: tf.flags.DEFINE_bool, int: tf.flags.DEFINE_integer}
    kinds[float] = tf.flags.DEFINE_float
    kinds.get(type(typed), tf.flags.DEFINE_string)(name, typed, name)


if __name__ == "__main__":
    script, *arguments = sys.argv[1:]
    main = importlib.import_module(script).main
    for argument in arguments:
        define(*argument.removeprefix("--").split("=", 1))
    tf.app.run(main, argv=sys.argv[:1])
