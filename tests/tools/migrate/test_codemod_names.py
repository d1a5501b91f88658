"""Every name of the table can be imported from where `migrate` says, and is what serves it."""

import importlib

from support.tables import failures

from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.old_names.legacy.overlay import Refused
from tpu_estimator_compat.old_names.legacy.table import Status
from tpu_estimator_compat.tools.migrate.codemod import migrate_text
from tpu_estimator_compat.tools.scan.findings import Status as FindingStatus

ROWS = [row for row in table.load().rows.values() if "." in row.name]


def spelled(row):
    root, _, rest = row.name.partition(".")
    return f"{'tensorflow' if root == 'tf' else root}.{rest}"


def served(row):
    module, _, attribute = row.served_by.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def test_from_imports():
    assert failures(migrates, ROWS) == []


def migrates(row):
    module, _, name = spelled(row).rpartition(".")
    # The second line makes sure that `tensorflow` means TensorFlow 1.
    code = f"from {module} import {name} as found\nimport tensorflow as tf; tf.Session\n"
    migration = migrate_text(code, "a.py")
    if row.status is Status.REFUSED and row.name.startswith("tensorflow_estimator"):
        # It has no place in `tf`; names below it may have one of their own.
        below = table.load().below(row.name)
        status = FindingStatus.BY_HAND if below else FindingStatus.REFUSED
        assert migration.left[0].status is status
        return
    first = migration.after.splitlines()[0]
    assert "tpu_estimator_compat" in first or not row.name.startswith("tf.")
    names = {}
    exec(migration.after, names)
    if row.status is Status.REFUSED:
        assert isinstance(names["found"], Refused) or table.load().below(row.name)
    elif ":" in row.served_by:
        assert names["found"] is served(row)
    else:
        assert names["found"] is not None
