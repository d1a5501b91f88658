import json

import pytest

from tpu_estimator_compat.__main__ import main

DEAD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"

REFUSED = "import tensorflow as tf\ntf.estimator.BoostedTreesClassifier()\n"


def test_table(tree, capsys):
    tree(a=DEAD, b__c=REFUSED, d="import tensorflow as tf\n")
    assert main(["scan", "."]) == 1
    out = capsys.readouterr().out.splitlines()
    name = "tf.estimator.BoostedTreesClassifier"
    assert out[0].startswith(f"./b/c.py:2  {name}  refused  Boosted trees")
    assert out[1].split("  ")[0] == "./a.py:1"
    assert out[2].split() == [
        *("./a.py:2", "tf.contrib.tpu.TPUConfig", "works"),
        *("Write", "tpu_estimator_compat.v1.estimator.tpu.TPUConfig."),
    ]
    assert out[4:] == [
        "3 files searched, 3 findings in 2:",
        "     1 refused    not provided; the advice says what to write instead",
        "     2 works      `migrate` rewrites these; `run` runs the script as it is",
    ]


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("test_train", DEAD, True),
        ("train_test", REFUSED, True),
        ("train", DEAD, False),
        ("test_layers", "import tensorflow as tf\ntf.contrib.layers.flatten(x)\n", False),
    ],
)
def test_tests_of_estimators_are_told_of_the_testing_module_once(tree, capsys, file, text, told):
    tree(**{file: text + text})
    main(["scan", "."])
    assert capsys.readouterr().out.count("`tpu_estimator_compat.testing`") == told


def test_json(tree, capsys):
    tree(a=DEAD)
    assert main(["scan", "a.py", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["files"], report["counts"]) == (1, {"works": 2})
    assert report["findings"][1] == {
        "file": "a.py",
        "line": 2,
        "column": 5,
        "name": "tf.contrib.tpu.TPUConfig",
        "status": "works",
        "advice": "Write tpu_estimator_compat.v1.estimator.tpu.TPUConfig.",
    }
