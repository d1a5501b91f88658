import json
import re
import shlex
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.tools.commands import COMMANDS

EXAMPLES = [
    pytest.param(command, example, id=example)
    for command in COMMANDS
    for example in re.findall(r"^    python -m tpu_estimator_compat (.*)$", command.__doc__, re.M)
]


def test_each_command_has_an_example():
    assert {example.values[0] for example in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("command", "example"), EXAMPLES)
def test_an_example(command, example, monkeypatch):
    monkeypatch.setattr(command, "run", lambda arguments: 0)
    assert main(shlex.split(example)) == 0


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_the_help_shows_it(command, capsys):
    with pytest.raises(SystemExit):
        main([command.NAME, "--help"])
    assert f"python -m tpu_estimator_compat {command.NAME}" in capsys.readouterr().out


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 2
    told = capsys.readouterr().err
    assert told.startswith("usage: ")
    assert all(f"\n    {command.NAME}" in told for command in COMMANDS)


def test_a_name(capsys):
    assert main(["names", "tensorflow.contrib.tpu.TPUEstimator"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "tf.contrib.tpu.TPUEstimator: works",
        "  gone since  TensorFlow 2.0",
        "  write       tf.estimator.tpu.TPUEstimator",
    ]


def test_a_name_of_a_module_with_one_row(capsys):
    assert main(["names", "tf.contrib.all_reduce.build_ring_all_reduce"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("tf.contrib.all_reduce.build_ring_all_reduce: refused\n")
    assert "tf.tpu.cross_replica_sum" in told
    assert "write  " not in told


def test_a_part_of_names_as_json(capsys):
    assert main(["names", "--json", "CrossShardOpt"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"tf.contrib.tpu.CrossShardOptimizer"} <= {row["name"] for row in rows}
    assert {row["status"] for row in rows} == {"works"}


def test_an_unknown_name_beside_a_known_one(capsys):
    assert main(["names", "tf.contrib.tpu.TPUConfig", "no_such_thing"]) == 2
    captured = capsys.readouterr()
    assert "no dropped name has 'no_such_thing'" in captured.err
    assert "tf.contrib.tpu.TPUConfig: works" in captured.out


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("tf.train.AdamOptimizer", 0, "tf.compat.v1.train.AdamOptimizer\n"),
        ("tf.nn.dropout", 0, "TensorFlow still has it."),
        ("tf.contrib", 0, "served by  tpu_estimator_compat.v1.contrib\n"),
        ("tf.keras.losses.Reduction.SUM", 0, "tf.keras.losses.Reduction.SUM: differs"),
        ("tf.estimator.Estimator.train", 0, "tpu_estimator_compat.estimator.Estimator.train"),
        ("tensorflow.lite.python.lite.TFLiteConverter", 0, "write      tf.lite.python.lite"),
        ("tf.contrib.layers.nonexistent", 1, "has it.\n"),
        ("tf.contrib.layers.flaten", 1, "Did you mean tf.contrib.layers.flatten?"),
        ("tf.estimator.Estimator.train_it", 1, "Did you mean tf.estimator.Estimator.train?"),
        ("tf.keras.utils.multi_gpu_model", 1, "tf.keras.utils.multi_gpu_model does not work"),
        ("tf.python.nothing.at_all", 1, "does not work"),
        ("tf.contrib.quantize.experimental_create_training_graph", 1, ": refused"),
    ],
)
def test_a_name_without_a_row_of_its_own(capsys, name, status, said):
    assert main(["names", name]) == status
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def test_tables_answer_without_tensorflow():
    """Of the installed TensorFlow, too: its import takes seconds."""
    code = """
import sys
from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.old_names.legacy import table
main(["names", "--json", *table.load().rows, *sys.argv[1:]])
sys.exit("tensorflow" in sys.modules)
"""
    alive = ["tf.train.AdamOptimizer", "tf.data.experimental.load"]
    in_modules = ["tf.layers.dense", "tf.contrib.layers.batch_norm", "tf.contrib.bigtable.X"]
    command = [sys.executable, "-c", code, *alive, *in_modules, "cross_replica"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    answered = {row["name"] for row in json.loads(done.stdout)}
    assert answered == {*table.load().rows, *alive, *in_modules}
