"""One kind of change, one module; `RULES` is all of them, in the order in which they apply.

A rule is made from the `Facts` of a module. `nodes` are the types of libcst that it changes, and
`leave` gives what stands for such a node, given its place in the file. What a rule does not dare to
change is found again by the scan of the result.
"""

from tpu_estimator_compat.migrate.rules.added_import import AddedImport
from tpu_estimator_compat.migrate.rules.chains import Chains
from tpu_estimator_compat.migrate.rules.from_imports import FromImports
from tpu_estimator_compat.migrate.rules.plain_imports import PlainImports
from tpu_estimator_compat.migrate.rules.python2 import Python2

RULES = (PlainImports, FromImports, Chains, Python2, AddedImport)
