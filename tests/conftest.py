"""Shared set-up of the tests: quiet TensorFlow, four logical CPUs, strategies over them."""

import gc
import logging
import os
import pathlib
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TPU_ESTIMATOR_COMPAT_FSYNC", "off")  # but for tests/faults: disks are slow
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")  # it is in the home directory

# Else the pytests that tests start would write their reports over this one's, say.
os.environ.pop("PYTEST_ADDOPTS", None)

import pytest
import tensorflow as tf
from support import cluster, python_path
from support.forks import PLAIN_KERNELS, Forks
from support.untuned import untuned_replicas

pytest_plugins = [
    "support.original",
    "support.installations",
    "support.client_packages",  # after what it imports, whose assertions pytest rewrites
    "support.graph_sessions",
    "support.source_trees",
]

LOGICAL_CPUS = 4

LONG = frozenset(pathlib.Path(__file__).with_name("long_tests.txt").read_text().splitlines())
"""Tests that are slow only because they take long: `.ci/long_tests.py` finds them."""


def pytest_configure(config):
    del config
    # nohup and `&` have these ignored, by this process and by those that tests start.
    defaults = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    for number, handler in defaults.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS
    )
    gc.collect()
    gc.freeze()  # Python's collector need not look at half a million objects of imports again


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests of minutes come first, then the core of parity, which fails for most that is wrong.

    At the end, one process would have to wait for another that runs a test of minutes.
    """

    def place(item):
        return (
            item.get_closest_marker("minutes") is None,
            not item.nodeid.startswith("tests/parity/test_core.py"),
        )

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item):
    """`full` implies `slow`, and long tests are slow: `-m "not slow"` leaves all of them out."""
    if item.get_closest_marker("full") or item.nodeid in LONG:
        item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def plain_imports():
    """Processes that tests start import what users' do, and not what else is installed for tests.

    A fixture: workers of pytest-xdist are no such processes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path.joined(python_path.PLAIN_IMPORTS))
        yield


@pytest.fixture(autouse=True)
def level_of_the_log():
    """Puts the level of TensorFlow's log back, which one test would set for all that follow."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def forks_of_clusters():
    from support.sides import running

    cluster.FORKS[:] = [Forks(sys.executable, running.MODULES, PLAIN_KERNELS)]


@pytest.fixture(scope="session")
def forks():
    """`forks.run(...)` runs a script in a fork of a process that has imported TensorFlow."""
    return Forks()


@pytest.fixture(scope="session")
def strategy():
    def of(replicas: int) -> tf.distribute.Strategy:
        if replicas == 1:
            return tf.distribute.OneDeviceStrategy("/cpu:0")
        return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])

    return of


@pytest.fixture
def quick_release():
    """Iterators that Keras distributes over replicas end at once."""
    with untuned_replicas():
        yield


@pytest.fixture
def tuned(monkeypatch):
    """`tuned(few_steps=2)`: what is made from now on goes by these numbers of `Tuning`."""
    from tpu_estimator_compat.engine.functions import tuning

    def of(**numbers) -> None:
        monkeypatch.setattr(tuning, "NUMBERS", tuning.Tuning(**numbers))

    return of
