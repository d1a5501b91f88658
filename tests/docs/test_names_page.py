"""The guide's page of all dropped names: made from the table that the package reads.

`python tests/docs/test_names_page.py` writes the page anew.
"""

import collections
import pathlib
from collections.abc import Iterable

from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status

NAMES = pathlib.Path(__file__).parents[2] / "migration_guide" / "names.md"

_FEW = 3
"""Namespaces with at most this number of rows join their parent's section."""

_INTRODUCTION = """\
# Removed names

After this page you know, for each name of estimator code that TensorFlow {release} lacks, whether
it works here and what to write today. [`scan`](migrate.md) finds these names in your code:

```
python -m tpu_estimator_compat scan train.py
```

| status | meaning |
|---|---|
| *works* | works as in the original; tested |
| *differs* | works, with the difference in the last column |
| *refused* | not provided. It can be imported; using it raises an error with its row's advice |

There are {count} names: {counts}.

`tf` is the `tf` of TensorFlow 1, which is `tpu_estimator_compat.v1` here: `run` gives it to a
script, and `migrate` writes it. A module's row holds for all its names, except those with their own
rows.

Modules of `tensorflow_estimator.python.estimator`, which are those of
`tensorflow.python.estimator`, have the private names of the original, too: its own code, with this
package's estimators. What a script sets there has its effect, or a log line says that no estimator
looks for it. Where the row of a module gives a reason, functions and classes without a row of their
own are refused.

`python -m tpu_estimator_compat names PART` finds the names that have a part in them.
"""


def page(rows: Iterable[DeadName]) -> str:
    every = sorted(rows, key=lambda row: row.name.split("."))
    sizes = collections.Counter(_section(row.name) for row in every)
    sections: dict[str, list[DeadName]] = collections.defaultdict(list)
    for row in every:
        own = _section(row.name)
        sections[own if sizes[own] > _FEW else own.rpartition(".")[0] or own].append(row)
    counted = collections.Counter(row.status for row in every)
    counts = ", ".join(f"{counted[status]} {status.value}" for status in Status)
    text = _INTRODUCTION.format(release="2.21", count=len(every), counts=counts)
    tables = "".join(_table(name, section) for name, section in sections.items())
    return f"{text}{tables}\nNext: [find these names in your code, and rewrite them](migrate.md).\n"


def _section(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["contrib"] else 2 if parts[0] == "tf" else 1])


def _table(name: str, rows: list[DeadName]) -> str:
    lines = [f"\n## {name}\n", "| name | gone since | status | write | |", "|---|---|---|---|---|"]
    for row in rows:
        write = "" if row.status is Status.REFUSED else f"`{row.today}`"
        cells = (f"`{row.name}`", row.since, row.status.value, write, row.advice)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def test_up_to_date():
    made = page(table.load().rows.values())
    assert NAMES.read_text() == made, f"run python {__file__}"


def test_a_page():
    rows = [
        DeadName("tf.contrib.a.f", "2.0", Status.WORKS, "m:f", "tf.f"),
        DeadName("tf.estimator.E", "2.16", Status.REFUSED, advice="Write a | b."),
        DeadName("tensorflow_estimator.x", "2.16", Status.DIFFERS, "m.x", advice="It is new."),
    ]
    text = page(rows)
    assert "There are 3 names: 1 works, 1 differs, 1 refused." in text
    assert "## tf.contrib\n\n| name | gone since | status | write | |\n" in text
    assert "| `tf.contrib.a.f` | 2.0 | works | `tf.f` |  |" in text
    assert "| `tf.estimator.E` | 2.16 | refused |  | Write a \\| b. |" in text
    assert "| `tensorflow_estimator.x` | 2.16 | differs | `m.x` | It is new. |" in text


if __name__ == "__main__":
    NAMES.write_text(page(table.load().rows.values()))
