import pathlib

from tpu_estimator_compat.old_names.legacy import page, table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status

NAMES = pathlib.Path(__file__).parents[2] / "migration_guide" / "names.md"


def test_up_to_date():
    made = page.page(table.load().rows.values())
    assert NAMES.read_text() == made, f"run python -m {page.__name__} > migration_guide/names.md"


def test_a_page():
    rows = [
        DeadName("tf.contrib.a.f", "2.0", Status.WORKS, "m:f", "tf.f"),
        DeadName("tf.estimator.E", "2.16", Status.REFUSED, advice="Write a | b."),
        DeadName("tensorflow_estimator.x", "2.16", Status.DIFFERS, "m.x", advice="It is new."),
    ]
    text = page.page(rows)
    assert "There are 3 names: 1 works, 1 differs, 1 refused." in text
    assert "## tf.contrib\n\n| name | gone since | status | write | |\n" in text
    assert "| `tf.contrib.a.f` | 2.0 | works | `tf.f` |  |" in text
    assert "| `tf.estimator.E` | 2.16 | refused |  | Write a \\| b. |" in text
    assert "| `tensorflow_estimator.x` | 2.16 | differs | `m.x` | It is new. |" in text
