import json

import pytest
from support.notebooks import notebook

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.scan.module import scan_notebook

CELLS = (
    "# About\ntf.contrib",
    "%matplotlib inline\nimport tensorflow as tf",
    "if tf:\n    !ls\n    %time x = tf.contrib.tpu.TPUConfig()",
    "%%writefile train.py\nimport tensorflow as tf\n\ntf.contrib.tpu.TPUConfig()",
    "%%bash\necho tf.contrib",
)


def test_places(tree, capsys):
    tree()
    with open("x.ipynb", "w") as file:
        file.write(notebook(*CELLS, text=[1]))
    assert main(["scan", "."]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0] for line in lines[:4]] == [
        "./x.ipynb, cell 2, line 2",
        "./x.ipynb, cell 3, line 3",
        "./x.ipynb, cell 4, line 2",
        "./x.ipynb, cell 4, line 4",
    ]
    assert "cell 3, line 3 uses tf.contrib.tpu.TPUConfig" in lines[0]
    assert "cell 4, line 4 uses tf.contrib.tpu.TPUConfig" in lines[2]
    assert lines[5] == "1 file searched, 4 findings in 1:"
    assert main(["scan", "--json", "x.ipynb"]) == 0
    finding = json.loads(capsys.readouterr().out)["findings"][1]
    assert (finding["cell"], finding["line"], finding["column"]) == (3, 3, 9)


def test_a_cell_that_does_not_parse_hides_no_other():
    found = scan_notebook(
        notebook("import tensorflow as tf", "x = (", "tf.contrib.tpu.TPUConfig()"), "x.ipynb"
    )
    assert [(f.cell, f.line, f.status.value) for f in found.findings] == [
        (1, 1, "works"),
        (2, 1, "unreadable"),
        (3, 1, "works"),
    ]


@pytest.mark.parametrize("text", ["{}", '{"cells": 1', notebook("x").replace('"python"', '"R"')])
def test_what_is_no_notebook_of_python(tree, capsys, text):
    tree()
    with open("x.ipynb", "w") as file:
        file.write(text)
    for command in ("scan", "migrate"):
        assert main([command, "."]) == 2
        assert "./x.ipynb  -  unreadable  Not read: It is " in capsys.readouterr().out
