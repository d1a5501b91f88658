"""Commands of `python -m tpu_estimator_compat`: a module each, listed here.

A module has `NAME`, `add_arguments(parser)` and `run(arguments)`, which returns the exit status.
The first line of its docstring is its help.
"""

from tpu_estimator_compat.tools.commands import (
    compare,
    doctor,
    map_weights,
    migrate,
    names,
    preflight,
    run,
    scan,
)

COMMANDS = (run, scan, migrate, names, map_weights, preflight, compare, doctor)
