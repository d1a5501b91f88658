"""What the package says of an installation before it imports TensorFlow, from metadata files."""

import re
import sys

import pytest

from tpu_estimator_compat import environment


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(tensorflow="2.20.0")` writes what pip would have left of these, and nothing else.

    A file list says that TensorFlow's distributions own the module; `owner=False` leaves it out.
    """
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)

    def write(owner: bool = True, **versions: str) -> None:
        for key, version in versions.items():
            name = key.replace("_", "-")
            folder = tmp_path / f"{key}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
            files = ["tensorflow/__init__.py", "tensorflow/_api/v2/v2.py"] if owner else []
            (folder / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))

    return write


@pytest.mark.parametrize(
    "versions",
    [
        {},
        {"tensorflow": "2.21.0", "protobuf": "7.36.2", "libtpu": "0.0.51"},
        {"tensorflow": "2.20.0", "protobuf": "6.33.0", "libtpu": "0.0.51"},
        {"tensorflow": "2.19.1"},
        {"tensorflow_cpu": "2.15.1", "protobuf": "4.25.0"},
        {"tensorflow_tpu": "2.20.0"},
        {"tensorflow_tpu": "2.20.0", "protobuf": "6.33.0", "libtpu": "0.0.14"},
        {"tensorflow_tpu": "2.20.0", "protobuf": "6.33.0", "libtpu": "0.0.31"},
        {"tf_nightly": "2.22.0.dev20260101", "protobuf": "7.1"},
    ],
    ids=lambda versions: " ".join(versions) or "nothing",
)
def test_one_tensorflow_passes(install, versions):
    install(**versions)
    environment.check()


def test_two_distributions_are_named_with_the_way_out(install):
    install(tensorflow="2.21.0", tensorflow_tpu="2.20.0")
    with pytest.raises(ImportError) as raised:
        environment.check()
    text = str(raised.value)
    assert text.startswith("tensorflow 2.21.0 and tensorflow-tpu 2.20.0 are both installed.")
    removal = "pip uninstall -y tensorflow tensorflow-tpu && pip install --no-deps"
    assert f"to keep tensorflow:  {removal} tensorflow==2.21.0\n" in text
    assert f"to keep tensorflow-tpu:  {removal} tensorflow-tpu==2.20.0\n" in text


def test_two_others(install):
    install(tensorflow_cpu="2.19.1", tf_nightly="2.22.0")
    with pytest.raises(ImportError, match=r"^tensorflow-cpu 2\.19\.1 and tf-nightly 2\.22\.0 are"):
        environment.check()


def test_a_stand_in_without_files_is_no_owner(install):
    """Some install an empty `tensorflow`, which only fulfils what tf-keras asks of pip."""
    install(tensorflow_tpu="2.20.0")
    install(tensorflow="2.20.0", owner=False)
    environment.check()


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow_tpu"])
def test_protobuf_that_2_20_cannot_write_graphs_with(install, name):
    install(**{name: "2.20.0"}, protobuf="7.36.2")
    with pytest.raises(ImportError, match=r"^protobuf 7\.36\.2 is (?s:.*)pip install 'protobuf<7'"):
        environment.check()


@pytest.mark.parametrize("version", ["0.0.32", "0.0.32.1", "0.0.34", "0.0.51", "0.1"])
def test_libtpu_that_ends_the_process(install, version):
    install(tensorflow_tpu="2.20.0", libtpu=version)
    message = rf"^libtpu {re.escape(version)} is (?s:.*)pip install libtpu=={environment.LIBTPU}"
    with pytest.raises(ImportError, match=message):
        environment.check()


def test_a_tensorflow_that_is_imported_already_is_left_alone(install, monkeypatch):
    install(tensorflow_tpu="2.20.0", libtpu="0.0.51")
    monkeypatch.setitem(sys.modules, "tensorflow", object())
    environment.check()


def test_the_tpus_build_has_no_xla_for_the_cpu(install):
    install(tensorflow_tpu="2.20.0")
    assert not environment.has_xla_for_cpu()
    with pytest.raises(RuntimeError, match=r"^preflight compiles with XLA for the CPU, which tens"):
        environment.require_xla_for_cpu("preflight")


def test_others_have_it(install):
    install(tensorflow="2.20.0")
    environment.require_xla_for_cpu("preflight")


@pytest.mark.parametrize(
    ("argv", "orig_argv", "expected"),
    [
        (["-m", "doctor"], ["python", "-m", "tpu_estimator_compat", "doctor"], True),
        (["/bin/tpu-estimator-compat", "doctor"], ["python", "x", "doctor"], True),
        (["-m", "run", "doctor"], ["python", "-m", "tpu_estimator_compat", "run", "doctor"], False),
        (["-m", "doctor"], ["python", "-m", "another", "doctor"], False),
        (["train.py", "doctor"], ["python", "train.py", "doctor"], False),
        (["-m"], ["python", "-m", "tpu_estimator_compat"], False),
    ],
)
def test_only_the_command_doctor_is_let_in(monkeypatch, argv, orig_argv, expected):
    """It reports what the import refuses."""
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig_argv)
    assert environment.is_for_doctor() is expected
