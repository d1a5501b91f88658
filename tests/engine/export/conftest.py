import importlib
import time
import types

import pytest
import tensorflow as tf
from tensorflow.python.saved_model.model_utils import export_utils

from tpu_estimator_compat.engine.export import directories

from . import export_driver


@pytest.fixture(scope="session")
def cases():
    export_driver.install_namespace("ours")
    return importlib.import_module("engine.export.export_cases")


@pytest.fixture(scope="session")
def trained(cases, tmp_path_factory):
    """`trained(name, **arguments)` is an estimator of a case that has a checkpoint."""
    made = {}

    def of(name, **arguments):
        case = cases.CASES[name]
        if name not in made:
            made[name] = str(tmp_path_factory.mktemp("models") / name)
            cases.make_estimator(case, made[name]).train(case.input_fn, steps=3)
        return cases.make_estimator(case, made[name], **arguments)

    return of


@pytest.fixture(autouse=True)
def eager_outside():
    """Whatever an export does, the script goes on eagerly, in its own graph."""
    graph = tf.compat.v1.get_default_graph()
    yield
    assert tf.executing_eagerly()
    assert tf.compat.v1.get_default_graph() is graph


@pytest.fixture(autouse=True)
def no_second_is_waited_for(monkeypatch):
    """Directories are named by seconds: where one waits for the next, it has come."""
    waited = []
    clock = types.SimpleNamespace(time=lambda: time.time() + sum(waited), sleep=waited.append)
    for module in (directories, export_utils):
        monkeypatch.setattr(module, "time", clock)
