"""The lines of the page on installing, executed, and the package on what they install."""

import json
import re
import shutil

import pytest
from support.installations import NAMES, ROOT, installation, lines

STEPS = tuple(
    f"engine/{room}"
    for room in ("graph", "capture", "state", "step", "functions", "cluster", "loop", "topology")
)
"""Folders of tests that lean on TensorFlow's inner parts."""

AROUND_STEPS = (
    *(f"engine/checkpoint/test_{name}.py" for name in ("checkpoint", "diagnosis")),
    *(f"engine/hooks/test_{name}.py" for name in ("hooks", "saver_hook", "schedule")),
    *("engine/hooks/test_traits.py", "engine/hooks/test_traits_turns.py"),
    *("keras_model", "tools/test_weight_map.py"),
)
"""Tests that lean on what it offers to everybody: of those with long waits, the quick ones."""

OTHERS = [name for name in NAMES if name != "tensorflow-2.21"]
"""Those whose TensorFlow is not the one that all other tests run on."""

FAST_TESTS = [
    ("tensorflow-2.19", STEPS),
    ("tensorflow-2.19", AROUND_STEPS),
    # Its Python is that of tensorflow 2.20. What 2.19 and 2.21 offer to everybody, 2.20 offers too.
    ("tensorflow-tpu", ("engine/functions", "engine/loop", "engine/topology")),
]

IMPORT = """
import json, sys, time
start = time.process_time()
import tpu_estimator_compat as tpu
lazy = "tensorflow" not in sys.modules
light = time.process_time()
import tensorflow as tf, keras
between = time.process_time()
tpu.TPUEstimator
end = time.process_time()
from importlib import metadata
from tpu_estimator_compat.engine.topology import tpu_system
print(json.dumps({
    "lazy": lazy, "seconds": [light - start, between - light, end - between],
    "tensorflow": tf.__version__, "tf-keras": metadata.version("tf-keras"),
    "devices": [device.device_type for device in tf.config.list_physical_devices()],
    "tpu": tpu_system.in_environment() is not None,
}))
"""


def test_each_line_is_on_the_page():
    assert tuple(lines()) == NAMES


def test_named_folders_and_files_of_tests_exist():
    named = {path for _, paths in FAST_TESTS for path in paths}
    assert not [path for path in named if not (ROOT / "tests" / path).exists()]


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_import(name):
    """Without a TPU, and hardly slower than TensorFlow's own."""
    done = installation(name).run("-c", IMPORT)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    ours = found["seconds"][0] + found["seconds"][2]
    assert found["lazy"]
    assert ours < 3, found["seconds"]
    release = "2.20" if name == "tensorflow-tpu" else name.removeprefix("tensorflow-")
    assert found["tensorflow"].startswith(f"{release}.")
    assert found["tf-keras"].startswith(f"{release}.")
    # The TPU's build lists its system without any chip.
    assert ("TPU_SYSTEM" in found["devices"]) == (name == "tensorflow-tpu")
    assert not found["tpu"]


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_requirements_are_met(name):
    """But for `tensorflow` beside tensorflow-tpu, which pip does not know to be the same."""
    done = installation(name).run("-m", "pip", "check", path=())
    lacking = [
        f"{package} requires tensorflow, which is not installed."
        for package in ("tf-keras 2.20.1", "tpu-estimator-compat 1.0.0")
    ]
    expected = lacking if name == "tensorflow-tpu" else ["No broken requirements found."]
    assert sorted(done.stdout.replace("_", "-").splitlines()) == expected


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_digits(name, tmp_path):
    script = ROOT / "migration_guide" / "examples" / "digits.py"
    folders = [f"--{flag}={tmp_path / flag}" for flag in ("data_dir", "model_dir", "output_dir")]
    done = installation(name).run(str(script), *folders, "--train_steps=150", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    [accuracy] = re.findall(r"^Test accuracy: ([\d.]+)$", done.stdout, re.MULTILINE)
    assert float(accuracy) > 0.8


@pytest.mark.full
@pytest.mark.minutes
@pytest.mark.parametrize(("name", "directories"), FAST_TESTS)
def test_fast_tests(name, directories):
    folders = [f"tests/{directory}" for directory in directories]
    arguments = ["-q", "-p", "no:cacheprovider", "-m", "not slow", *folders]
    done = installation(name).run("-m", "pytest", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert re.search(r"^\d{2,} passed", done.stdout.splitlines()[-1]), done.stdout[-1000:]


@pytest.mark.full
@pytest.mark.parametrize("name", OTHERS)
def test_simulated_tpu(name):
    """TensorFlow's own TPU code of that release runs our steps; of tests/tpu_sim, two scenarios."""
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "chips and one", "tests/tpu_sim"]
    done = installation(name).run("-m", "pytest", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert re.search(r"^2 passed", done.stdout.splitlines()[-1]), done.stdout[-1000:]


@pytest.mark.full
def test_two_distributions(tmp_path):
    """pip's own files of the one, laid beside those of the other."""
    plain, tpu = installation("tensorflow-2.20"), installation("tensorflow-tpu")
    [left] = plain.packages.glob("tensorflow-2.20.*.dist-info")
    shutil.copytree(left, tmp_path / left.name)
    done = tpu.run("-c", "import tpu_estimator_compat", path=(ROOT, tmp_path))
    assert done.returncode == 1
    assert re.search(
        r"^ImportError: tensorflow 2\.20\.\d and tensorflow-tpu 2\.20\.0 are both installed\.",
        done.stderr,
        re.MULTILINE,
    )


@pytest.mark.full
def test_refused_libtpu_ends_the_process(tmp_path):
    """So it is refused before: the oldest of which that is known."""
    tpu = installation("tensorflow-tpu")
    pip = ["-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    done = tpu.run(*pip, "libtpu==0.0.32.1", path=())
    assert done.returncode == 0, done.stderr[-3000:]
    library = {"TPU_LIBRARY_PATH": str(tmp_path / "libtpu" / "libtpu.so")}
    done = tpu.run("-c", "import tensorflow", path=(tmp_path,), env=library)
    assert done.returncode < 0, done.stderr[-3000:]
    assert "not available in this library" in done.stderr
    done = tpu.run("-c", "import tpu_estimator_compat", path=(ROOT, tmp_path), env=library)
    assert done.returncode == 1
    assert "ImportError: libtpu 0.0.32.1 is installed beside" in done.stderr
