"""The commands of `python -m tpu_estimator_compat`, a module each.

A module has `NAME`, `add_arguments(parser)` and `run(arguments)`, which returns the exit status.
Its docstring is the text of --help: one sentence, examples, details, and the exit statuses.
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
    to_keras,
)

COMMANDS = (run, scan, migrate, names, to_keras, map_weights, preflight, compare, doctor)
