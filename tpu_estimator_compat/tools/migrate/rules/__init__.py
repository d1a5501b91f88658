"""The rules, a module for each kind of change; `RULES` has them in the order of application.

A rule is made from the `Facts` of a module. `nodes` are the types of libcst that it changes, and
`leave` gives the replacement of such a node, given its place in the file. Places that a rule cannot
change safely are found again by the scan of the result.
"""

from tpu_estimator_compat.tools.migrate.rules.added_import import AddedImport
from tpu_estimator_compat.tools.migrate.rules.chains import Chains
from tpu_estimator_compat.tools.migrate.rules.from_imports import FromImports
from tpu_estimator_compat.tools.migrate.rules.plain_imports import PlainImports
from tpu_estimator_compat.tools.migrate.rules.python2 import Python2

RULES = (PlainImports, FromImports, Chains, Python2, AddedImport)
