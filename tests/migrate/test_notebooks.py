"""`migrate` of notebooks: the cells change that are to, and no byte besides."""

from __future__ import annotations

import json
import pathlib

import pytest
from support.notebooks import notebook

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.migrate.notebooks import migrate_notebook

BEFORE = (
    "# About tf.contrib é",
    '%matplotlib inline\n!pip install x \\\n  y\nimport tensorflow as tf\n"é"',
    "from tensorflow.contrib import tpu\nif tf:\n    files = !ls\n    !ls\n"
    "%time c = tf.contrib.tpu.TPUConfig()\ntf.contrib?",
    "%%time\ntf.estimator.BoostedTreesClassifier()",
    "%%writefile train.py\nimport tensorflow as tf\ntf.contrib.tpu.TPUConfig()\n",
    "%%bash\ntf.contrib.tpu",
    "x = 'tf.contrib'",
)
AFTER = (
    *BEFORE[:1],
    BEFORE[1].replace("tensorflow", "tpu_estimator_compat.v1"),
    BEFORE[2]
    .replace("tensorflow.contrib", "tpu_estimator_compat.v1.contrib")
    .replace("tf.contrib.tpu", "tf.estimator.tpu"),
    *BEFORE[3:4],
    BEFORE[4]
    .replace("import tensorflow", "import tpu_estimator_compat.v1")
    .replace("tf.contrib.tpu", "tf.estimator.tpu"),
    *BEFORE[5:],
)


@pytest.mark.parametrize("indent", [None, 1])
def test_cells_change_and_nothing_else(tmp_path, monkeypatch, capsys, indent):
    monkeypatch.chdir(tmp_path)
    path = pathlib.Path("x.ipynb")
    path.write_text(notebook(*BEFORE, text=[1], indent=indent))
    assert main(["migrate", "--write", "."]) == 1
    assert path.read_text() == notebook(*AFTER, text=[1], indent=indent)
    out = capsys.readouterr().out
    assert "Rewrote ./x.ipynb" in out
    assert "./x.ipynb, cell 4, line 2  tf.estimator.BoostedTreesClassifier  refused" in out
    assert main(["migrate", "--write", "."]) == 1
    assert "0 changed" in capsys.readouterr().out


def test_an_added_import_goes_into_the_cell_of_tensorflows():
    """And lines of findings below it are those of the new cells, or of the old ones."""
    before = notebook(
        "import tensorflow as tf\nx = tf.keras.Input(1)",
        "a = 1\ntf.compat.v1.keras.Input(1)",
        "%%time\nc = tf.estimator.RunConfig()",
    )
    migration = migrate_notebook(before, "x.ipynb")
    cells = ["".join(c["source"]) for c in json.loads(migration.after)["cells"]]
    assert cells == [
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\nx = tf.keras.Input(1)",
        "a = 1\nv1.keras.Input(1)",
        "%%time\nc = v1.estimator.RunConfig()",
    ]
    for written in (False, True):
        assert [(f.cell, f.line) for f in migration.report(written)] == [(2, 2)]
