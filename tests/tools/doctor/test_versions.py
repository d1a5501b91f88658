import configparser
import pathlib

import pytest

from tpu_estimator_compat import environment
from tpu_estimator_compat.tools.doctor import versions
from tpu_estimator_compat.tools.doctor.report import Status
from tpu_estimator_compat.tools.doctor.versions import Installed

SETUP = configparser.ConfigParser()
SETUP.read(pathlib.Path(__file__).parents[3] / "setup.cfg")
OWN = Installed(
    "1.0.0",
    (
        *(line for line in SETUP["options"]["install_requires"].split("\n") if line),
        *(
            f'{line}; extra == "jax"'
            for line in SETUP["options.extras_require"]["jax"].split("\n")
            if line
        ),
    ),
    SETUP["options"]["python_requires"],
)
GOOD = {
    "tpu_estimator_compat": OWN,
    "tensorflow": Installed("2.21.0", ("numpy>=1.26.0", "keras>=3.12.0", "protobuf>=6.31.1")),
    "keras": Installed("3.15.1"),
    "tf-keras": Installed("2.21.0", ("tensorflow<2.22,>=2.21",)),
    "numpy": Installed("2.4.6"),
    "protobuf": Installed("7.36.2"),
}
JAX = {
    "jax": Installed(
        "0.10.2",
        (
            "jaxlib<=0.10.2,>=0.10.1",
            'libtpu==0.0.42.*; extra == "tpu"',
            'jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == "cuda12"',
        ),
    ),
    "jaxlib": Installed("0.10.2"),
}


@pytest.fixture(autouse=True)
def this_installation_passes(monkeypatch):
    monkeypatch.setattr(environment, "check", lambda: None)


def wrong(found, python="3.11.7", chips=0):
    """Text and advice of what is not fine."""
    found = versions.judge(python, found, chips)
    assert all(f.status is Status.FAILURE for f in found[1:])
    assert (found[0].status is Status.OK) == (len(found) == 1)
    return [(f.text, f.advice) for f in found[1:]]


JAX_LINE = "'jax>=0.10.2,<=0.12.0.1'"


@pytest.mark.parametrize(
    "others",
    [
        {},
        JAX,
        {**JAX, "libtpu": Installed("0.0.51")},  # preflight's, where there is no TPU
        {**JAX, "jax-cuda12-plugin": Installed("0.10.2")},
    ],
    ids=["without jax", "jax", "preflight", "cuda"],
)
def test_sets_that_go_together(others):
    assert wrong({**GOOD, **others}) == []


@pytest.mark.parametrize(
    ("name", "version", "text", "line"),
    [
        ("keras", "3.12.0", "requires keras<3.16,>=3.15; found 3.12", "'keras<3.16,>=3.15'"),
        ("tf-keras", "2.18.0", "requires tf-keras<2.22", "'tf-keras<2.22,>=2.19'"),
        ("numpy", "1.24.0", "tensorflow 2.21.0 requires numpy>=1.26.0", "'numpy>=1.26.0'"),
        ("jax", "0.9.0", "requires jax<0.13,>=0.10.2; found 0.9.0", JAX_LINE),
        ("jaxlib", "0.10.1", "requires jaxlib<0.13,>=0.10.2", JAX_LINE),
    ],
)
def test_one_that_does_not_fit(name, version, text, line):
    found = {**GOOD, **JAX}
    found[name] = Installed(version, found[name].requires)
    [(told, advice)] = wrong(found)
    assert text in told
    assert advice == f"pip install {line}"


def test_jax_of_a_tpu_or_of_cuda_is_mended_with_its_extra():
    [(told, advice)] = wrong({**GOOD, **JAX, "libtpu": Installed("0.0.51")}, chips=4)
    assert told == "jax 0.10.2 requires libtpu==0.0.42.*; found 0.0.51."
    assert advice == "pip install 'jax[tpu]>=0.10.2,<=0.12.0.1'"
    [(_, advice)] = wrong({**GOOD, **JAX, "jax-cuda12-plugin": Installed("0.10.1")})
    assert advice == "pip install 'jax[cuda12]>=0.10.2,<=0.12.0.1'"


def test_a_package_that_is_missing():
    found = {name: there for name, there in GOOD.items() if name != "keras"}
    assert wrong(found)[0] == (
        "tpu_estimator_compat 1.0.0 requires keras<3.16,>=3.15; there is none.",
        "pip install 'keras<3.16,>=3.15'",
    )


def test_tensorflow_tpu_is_a_tensorflow():
    found = {**GOOD, "tensorflow-tpu": Installed("2.20.0"), "libtpu": Installed("0.0.24")}
    found["tf-keras"] = Installed("2.20.1", ("tensorflow<2.21,>=2.20",))
    del found["tensorflow"]
    assert wrong(found) == []


def test_another_python():
    [(told, _)] = wrong(GOOD, python="3.14.0")
    assert "requires Python >=3.11,<3.14, not 3.14.0" in told


def test_what_the_import_refuses_is_a_failure_with_its_commands(monkeypatch):
    def refuse():
        raise ImportError("Two are installed.\n  pip uninstall -y one two")

    monkeypatch.setattr(environment, "check", refuse)
    assert wrong(GOOD) == [("Two are installed.", "  pip uninstall -y one two")]


def test_what_pip_does_not_know_is_not_called_ok():
    found = {name: there for name, there in GOOD.items() if name != "tpu_estimator_compat"}
    last = versions.judge("3.11.7", found, 0)[-1]
    assert last.status is Status.NOT_MADE


def test_this_installation(monkeypatch):
    monkeypatch.undo()
    assert [f.text for f in versions.check(0) if f.status is Status.FAILURE] == []
