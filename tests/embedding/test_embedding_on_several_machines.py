import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import cluster, columns_probe, table_trainings

from . import tables_worker

pytestmark = pytest.mark.slow
WORKER = pathlib.Path(__file__).with_name("tables_worker.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("machines")


@pytest.fixture(scope="module")
def alone(folder):
    """What one process finds; `earlier` is left where it was after three steps."""
    earlier = str(folder / "earlier")
    table_trainings.trained(table_trainings.of_columns(earlier), table_trainings.share, 3)
    for name in ("alone", "two"):
        shutil.copytree(earlier, folder / name / "resumed")
    return tables_worker.train(str(folder / "alone"), earlier)


@pytest.fixture(scope="module")
def machines(folder, alone):
    """What two machines find, of which one has no files."""
    return cluster.run(
        WORKER, folder, 2, "train", root=str(folder / "two"), earlier=str(folder / "earlier")
    )


def assert_close(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("training", ["fresh", "resumed", "warm", "initialized", "dicts"])
def test_two_machines_train_tables_as_one_does(training, alone, machines):
    chief, worker = (machine[training] for machine in machines)
    wanted, whole = alone[training], {}
    assert chief.keys() == worker.keys()
    for name, rows in chief.items():
        if "embedding" in name or name.startswith("words"):  # 9 rows, or 5
            assert (len(rows), len(worker[name])) == ((5, 4) if training != "dicts" else (3, 2))
            whole[name] = rows + worker[name]
        else:  # such as a table of one row
            assert rows == worker[name], name
            whole[name] = rows
    assert_close(whole, wanted)


@pytest.mark.parametrize("training", ["fresh", "resumed", "dicts"])
def test_a_checkpoint_has_whole_tables(training, folder, alone, machines):
    path = tf.train.latest_checkpoint(str(folder / "two" / training))
    assert_close(columns_probe.values_in(path), alone[training])
    assert len(list((folder / "two" / training).glob(f"{pathlib.Path(path).name}.data-*"))) == 2
    assert not (folder / "two-worker").exists() or not list((folder / "two-worker").rglob("*ckpt*"))


def test_one_process_goes_on_from_what_two_left(tmp_path, folder, alone, machines):
    one, two = (
        table_trainings.of_columns(str(shutil.copytree(folder / name / "fresh", tmp_path / name)))
        for name in ("alone", "two")
    )
    data = columns_probe.input_fn
    wanted, found = (e.evaluate(data, steps=4) for e in (one, two))
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    wanted, found = (list(e.predict(lambda params: data(params).take(2))) for e in (one, two))
    np.testing.assert_allclose([f["out"] for f in found], [w["out"] for w in wanted], atol=1e-6)
    exported = two.export_saved_model(str(tmp_path / "exports"), table_trainings.receiver_fn)
    values = columns_probe.values_in(f"{exported.decode()}/variables/variables")
    assert_close(values, {name: alone["fresh"][name] for name in values})
    wanted, found = (table_trainings.trained(e, table_trainings.share, 8) for e in (one, two))
    assert_close(found, wanted)


@pytest.mark.parity
def test_the_original_goes_on_from_what_two_left(tmp_path, folder, alone, machines, original):
    given = []
    for name in ("alone", "two"):
        model_dir = str(shutil.copytree(folder / name / "resumed", tmp_path / name))
        given.append({"model_dir": model_dir, "optimizer": "sgd", "steps": 2})
    wanted, found = original.run(pathlib.Path(columns_probe.__file__), given=given)
    assert_close(found["values"], wanted["values"])
    assert found["results"] == pytest.approx(wanted["results"], rel=1e-5, abs=1e-6)
