import ast
import itertools
import json
import pathlib

import pytest
from support.notebooks import notebook

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.old_names.legacy.python_numpy.python2 import mended
from tpu_estimator_compat.tools.migrate.codemod import migrate_notebook, migrate_text, of_file

BEFORE = (
    "# About tf.contrib é",
    '%matplotlib inline\n!pip install x \\\n  y\nimport tensorflow as tf\n"é"',
    "from tensorflow.contrib import tpu\nif tf:\n    files = !ls\n    !ls\n"
    "%time c = tf.contrib.tpu.TPUConfig()\nd = %time tf.contrib.tpu.TPUConfig()\ntf.contrib?",
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


def test_an_added_import_goes_into_the_cell_of_tensorflows(tmp_path):
    """And lines of findings below it are those of the new cells, or of the old ones."""
    before = notebook(
        "import tensorflow as tf\nx = tf.keras.Input(1)",
        "a = 1\ntf.compat.v1.keras.Input(1)",
        "%%time\nc = tf.estimator.RunConfig()",
    )
    path = tmp_path / "x.ipynb"
    path.write_text(before)
    migrations = [of_file((), str(path), written) for written in (False, True)]
    cells = ["".join(c["source"]) for c in json.loads(migrations[0].after)["cells"]]
    assert cells == [
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\nx = tf.keras.Input(1)",
        "a = 1\nv1.keras.Input(1)",
        "%%time\nc = v1.estimator.RunConfig()",
    ]
    for migration in migrations:
        assert [(f.cell, f.line) for f in migration.report] == [(2, 2)]


MODULE = '''\
"""A notebook that was a module."""
# A comment.
import os
import tensorflow as tf
from tensorflow.contrib import tpu, layers as contrib_layers
if os.sep:
    from tensorflow.contrib.tpu.python.tpu import tpu_config
    # The last line of a block.
def model_fn(features):
    loss = tf.layers.dense(features, reduce(max, [1]))  # why

    print "loss", loss
@decorated
class Old(object):
    config = tf.estimator.tpu.TPUConfig(); other = tpu.RunConfig()
x = ("many",
     tf.contrib.tpu.CrossShardOptimizer)
for key, value in x.iteritems(): pass
'''


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cells_are_rewritten_as_one_module_is(end):
    """Each statement with the lines before it in a cell of its own, and of them all in one."""
    body = ast.parse(mended(MODULE).text).body
    decorators = [getattr(node, "decorator_list", []) for node in body]
    starts = [min(n.lineno for n in (s, *d)) for s, d in zip(body, decorators, strict=True)]
    lines = MODULE.splitlines(keepends=True)
    cells = ["".join(lines[a - 1 : b - 1]) for a, b in itertools.pairwise([*starts, 99])]
    text = notebook(*cells).replace("\n", end)
    after, _ = migrate_notebook(text, "x.ipynb")
    assert not {"\r", "\n"} & {*after.replace(end, "")}
    sources = ["".join(cell["source"]) for cell in json.loads(after)["cells"]]
    wanted = migrate_text(MODULE, "x.py").after
    assert "import functools" in wanted
    assert lines_of("\n".join(sources)) == lines_of(wanted)
    assert len(sources) == len(cells)


def lines_of(text: str) -> list[str]:
    """The lines that are not empty."""
    return [line for line in text.split("\n") if line]
