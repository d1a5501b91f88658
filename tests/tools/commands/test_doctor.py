import getpass
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest
from support import python_path

from tpu_estimator_compat.__main__ import main

CHECKS = {"versions", "devices", "runtime", "training", "figures", "sums", "checkpoint", "caches"}
COMMAND = [sys.executable, "-m", "tpu_estimator_compat", "doctor"]


def run(*words, **variables):
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--time_limit", "soon"], "expected a positive number of seconds, got 'soon'"),
        (["--time_limit", "-1"], "expected a positive number of seconds, got '-1'"),
        (["--model_dir", " "], "--model_dir is empty"),
        (["--report", "/proc/no/report.md"], "/proc/no/report.md"),
    ],
)
def test_wrong_arguments(words, said, capsys):
    try:
        status = main(["doctor", *words])
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert said in capsys.readouterr().err


def test_an_installation_that_cannot_be_imported_is_told(tmp_path):
    """The import of the package raises there; the command has its table all the same."""
    for name, version in (("tensorflow_cpu", "2.19.0"), ("tf_nightly", "2.22.0")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name.replace('_', '-')}\nVersion: {version}\n")
        (folder / "RECORD").write_text("tensorflow/__init__.py,sha256=x,1\n")
    done = run(
        "--json", PYTHONPATH=python_path.joined(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["findings"]
    [refused] = [f for f in found if "are both installed" in f["text"]]
    assert "pip uninstall -y" in refused["advice"]
    assert [f["status"] for f in found if f["check"] == "training"] == ["not made"] * 2


def test_the_guide_names_all_options_and_checks(capsys):
    page = (pathlib.Path(__file__).parents[3] / "migration_guide" / "doctor.md").read_text()
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    options = set(re.findall(r"--[a-z_]+", capsys.readouterr().out)) - {
        "--help",
        "--model",
        "--time",
    }
    assert set(re.findall(r"^\| `(--\w+)", page, re.MULTILINE)) == options
    assert CHECKS - {"figures"} == set(re.findall(r"^- \*\*(\w+)\*\*", page, re.MULTILINE))


@pytest.mark.full
@pytest.mark.parametrize("jax", [True, False], ids=["jax", "without jax"])
def test_this_machine(tmp_path, jax):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    if not jax:
        (hidden / "sitecustomize.py").write_text("import sys\n\nsys.modules['jax'] = None\n")
    report, model_dir = tmp_path / "report.md", tmp_path / "models" / "mine"
    done = run(
        "--json",
        "--report",
        report,
        "--model_dir",
        model_dir,
        PYTHONPATH=python_path.joined(hidden),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)["findings"]
    assert {f["check"] for f in found} == CHECKS
    sides = {side for f in found for side in re.findall(r"(\w+) on cpu", f["text"])}
    assert sides == ({"TensorFlow", "JAX"} if jax else {"TensorFlow"})
    assert any("JAX, which is not installed" in f["text"] for f in found) == (not jax)
    text = report.read_text()
    secrets = [platform.node(), os.path.expanduser("~"), str(tmp_path), sys.prefix]
    assert [secret for secret in secrets if secret in text] == []
    assert not re.search(rf"\b{getpass.getuser()}\b(?!>)", text)
    assert "&lt;model_dir>: 14 variables" in text
    assert not pathlib.Path(model_dir).parent.exists()
    assert not (tmp_path / "cache").exists()
