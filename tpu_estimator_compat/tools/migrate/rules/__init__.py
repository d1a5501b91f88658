"""The rules, a module for each kind of change; `RULES` has them in the order of application.

A rule is made from the `Facts` of a module. `nodes` are the types of libcst nodes that it changes,
and `leave` returns the replacement of a node, given its span. A scan of the result finds the places
that no rule can change safely.
"""

from tpu_estimator_compat.tools.migrate.rules.added_import import AddedImport
from tpu_estimator_compat.tools.migrate.rules.chains import Chains
from tpu_estimator_compat.tools.migrate.rules.from_imports import FromImports
from tpu_estimator_compat.tools.migrate.rules.plain_imports import PlainImports
from tpu_estimator_compat.tools.migrate.rules.python2 import Python2

RULES = (PlainImports, FromImports, Chains, Python2, AddedImport)
