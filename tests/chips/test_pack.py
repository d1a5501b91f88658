"""What is prepared for a machine with a GPU, tried on this machine's CPU."""

import json
import os
import subprocess
import sys

import pytest

from chips import pack, record


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "PACKED", tmp_path / "packed")
    monkeypatch.setattr(pack, "HERE", tmp_path)
    for name in ("run_all.sh", "unpack.py"):
        (tmp_path / name).write_bytes((record.HERE / name).read_bytes())
    monkeypatch.setattr(record, "HERE", tmp_path)
    return tmp_path


def ran(folder, results, limit=120):
    return subprocess.run(
        ["bash", str(folder / "run_all.sh"), str(results), sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "LIMIT": str(limit)},
    )


@pytest.mark.full
@pytest.mark.minutes
def test_saved_steps_run_and_are_collected(packed):
    folder = pack.steps({"encoder": (8, 60)}, "")
    done = ran(folder, packed / "results")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "=== encoder: exit status 0" in done.stdout
    assert (packed / "results" / "log.txt").read_text().startswith("=== encoder")
    written = json.loads(pack.collect(packed / "results", None).read_text())
    assert written["machine"]["device"] == "cpu"
    assert written["machine"]["jax"]
    encoder = written["saved_steps"]["encoder"]
    assert encoder["highest"]["variables"] < 1e-4
    assert encoder["gpu_utilization_percent"] is None


def step(folder, name, seconds, script):
    (folder / name).mkdir(parents=True)
    (folder / name / "run_step.py").write_text(script)
    with (folder / "order").open("a") as order:
        order.write(f"{name} {seconds}\n")


HANGS = """
import pathlib, sys, time
pathlib.Path(sys.argv[sys.argv.index("--result") + 1]).write_text("{}")
time.sleep(60)
"""


@pytest.mark.slow
def test_a_step_that_hangs_leaves_time_for_the_next(packed):
    folder = packed / "steps"
    step(folder, "hangs", 2, HANGS)
    step(folder, "runs", 20, "print('hello')")
    (folder / "run_all.sh").write_bytes((packed / "run_all.sh").read_bytes())
    done = ran(folder, packed / "results")
    assert done.returncode == 1
    assert "=== hangs: exit status 124" in done.stdout
    assert "=== runs: exit status 0" in done.stdout
    assert "hello" in done.stdout
    assert (packed / "results" / "hangs.result.json").exists()  # what was known in time
    late = ran(folder, packed / "late", limit=5)
    assert "hangs: not run, the time is up" in late.stdout


def test_utilization_is_of_the_busiest_tenth(packed):
    results = packed / "results"
    results.mkdir()
    (results / "machine.json").write_text('{"device": "NVIDIA H100 80GB HBM3"}')
    (results / "bert_base.result.json").write_text('{"seconds_per_step": 0.03}')
    lines = [f"bert_base, {percent}" for percent in range(100)]
    (results / "gpu.csv").write_text("\n".join([*lines, "encoder, 100", ""]))
    out = pack.collect(results, None)
    assert out.name == "nvidia_h100_80gb_hbm3.json"
    [found] = json.loads(out.read_text())["saved_steps"].values()
    assert found == {"seconds_per_step": 0.03, "gpu_utilization_percent": 90}


def test_parts_are_put_together(packed, tmp_path):
    site = tmp_path / "made" / "site"
    for name in ("tensorflow/core.py", "tensorflow/include/a.h", "other/include/b.py"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(name * 500)
    folder = tmp_path / "parts"
    folder.mkdir()
    pack.compressed(site, folder / "all")
    pack.split(folder / "all", folder, 200)
    scripts = sorted(folder.glob("*/unpack.py"))
    assert len(scripts) > 1
    there = tmp_path / "there"
    for i, script in enumerate(reversed(scripts)):
        words = [sys.executable, str(script), str(there)]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert said.startswith("Still to come: 0.of." if i < len(scripts) - 1 else "Unpacked.")
    found = {str(p.relative_to(there)) for p in there.rglob("*") if p.is_file()}
    assert found == {"site/tensorflow/core.py", "site/other/include/b.py"}
    assert (there / "site/other/include/b.py").read_text() == "other/include/b.py" * 500


def test_what_the_machine_has_is_not_packed():
    wanted = pack.requirements("tpu_estimator_compat[examples]", ["numpy", "ml-dtypes"])
    assert {"tensorflow", "keras", "tf-keras", "tensorflow-datasets", "protobuf"} <= wanted.keys()
    assert not {"numpy", "ml-dtypes", "libclang", "tpu-estimator-compat"} & wanted.keys()
    assert "nvidia-nccl-cu12" not in wanted  # of an extra of TensorFlow that nobody asked for
