import json

from tpu_estimator_compat.__main__ import main


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
    assert told.startswith("tf.contrib.all_reduce: refused\n")
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
    assert "no row for 'no_such_thing'" in captured.err
    assert "tf.contrib.tpu.TPUConfig: works" in captured.out
