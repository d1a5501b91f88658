"""The rules, a module for each kind of change; `RULES` has them in the order of application.

A rule is made from the `Facts` of a module. `nodes` are the types of libcst nodes that it changes,
and `leave` returns the replacement of a node, given its span. A scan of the result finds the places
that no rule can change safely.
"""

from tpu_estimator_compat.tools.migrate.rules.imports import AddedImport, FromImports, PlainImports
from tpu_estimator_compat.tools.migrate.rules.names import Chains, Python2

RULES = (PlainImports, FromImports, Chains, Python2, AddedImport)
