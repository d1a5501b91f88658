"""Folders on PYTHONPATH are the script's own, but for packages that are installed there."""

import os

import pytest

from tpu_estimator_compat.old_names.legacy.python_path import PythonPath

from .conftest import ROOT, environment, installed

COMMAND = ("-m", "tpu_estimator_compat", "run")
OLD = "import tensorflow as tf\nprint(__name__, tf.estimator.tpu.TPUEstimator.__name__)\n"


@pytest.fixture
def run(forks):
    def of(script, *folders, options=(), cwd=None, command=COMMAND):
        return forks.run(*command, *options, script, cwd=cwd, env=environment(*folders))

    return of


@pytest.fixture
def folders(tmp_path):
    """A script's folder; a repository on PYTHONPATH; and a folder of installed packages there."""
    script, repository, target = (tmp_path / name for name in ("scripts", "repository", "target"))
    for folder in (script, repository / "models", target):
        folder.mkdir(parents=True)
    (repository / "models" / "__init__.py").write_text("")
    (repository / "models" / "old.py").write_text(OLD)
    (repository / "alone.py").write_text(OLD)
    (target / "package.py").write_text(OLD)
    installed(target, "a-package", ["package"])
    return script, repository, target


@pytest.mark.slow
def test_modules_on_the_path_are_legacy_unless_installed(run, folders):
    script, repository, target = folders
    source = script / "script.py"
    source.write_text("import alone\nimport models.old\nimport package\n")
    done = run(source, repository, target)
    assert done.stdout == "alone TPUEstimator\nmodels.old TPUEstimator\n", done.stderr
    assert done.returncode == 1
    assert "module 'tensorflow' has no attribute 'estimator'" in done.stderr
    assert "--legacy-package package gives it the names that TensorFlow dropped" in done.stderr
    named = run(source, repository, target, options=("--legacy-package", "package"))
    assert named.stdout.endswith("package TPUEstimator\n"), named.stderr
    assert "--legacy-package" not in named.stderr


USELESS = "--legacy-package package would not help: there is no"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("from tensorflow.contrib import tpu", "No module named 'tensorflow.contrib'"),
        ("import tensorflow as tf\ntf.compat.v1.layers.BatchNormalization()", "with Keras 3"),
        ("import tensorflow as tf\ntf.nn.dropout(1.0, keep_prob=0.5)", "keep_prob"),
        ("from keras.src.engine import keras_tensor", "No module named 'keras.src.engine'"),
        ("from keras.utils import np_utils", "cannot import name 'np_utils'"),
        ("import keras.no_such", f"{USELESS} keras.no_such "),
        ("from keras.utils import no_such", f"{USELESS} keras.utils.no_such "),
        ("import tensorflow.no_such", f"{USELESS} tensorflow.no_such "),
    ],
)
def test_errors_of_modern_packages_name_the_option(run, folders, body, error):
    script, _, target = folders
    (target / "package.py").write_text(body + "\n")
    (script / "script.py").write_text("import package\n")
    done = run(script / "script.py", target)
    assert error in done.stderr
    assert "--legacy-package package" in done.stderr


KERAS_2 = """
import importlib

import keras
import keras.backend as K
from keras import layers
from keras.engine import Layer
from keras.engine.keras_tensor import KerasTensor
from keras.layers.recurrent import LSTM
from keras.src.engine import keras_tensor
from keras.utils.generic_utils import get_custom_objects, has_arg
import tf_keras

assert Layer is tf_keras.layers.Layer is layers.Layer
assert LSTM is tf_keras.layers.LSTM
assert KerasTensor is keras_tensor.KerasTensor is type(tf_keras.Input([1]))
assert get_custom_objects is tf_keras.utils.get_custom_objects
assert K.epsilon is tf_keras.backend.epsilon
assert keras.__version__ == tf_keras.__version__
assert importlib.import_module("keras.src.engine").keras_tensor.KerasTensor is KerasTensor
"""


@pytest.mark.slow
def test_keras_is_keras_2_in_named_and_old_packages(run, folders):
    script, _, target = folders
    (target / "package.py").write_text(KERAS_2)
    (target / "old_one.py").write_text(f"{KERAS_2}\nimport tensorflow as tf\ntf.estimator\n")
    installed(target, "old-one", ["old_one"], summary="For TensorFlow")
    source = script / "script.py"
    source.write_text(
        "import old_one, package, keras\nassert keras.__version__ > '3'\nprint('done')\n"
    )
    done = run(source, target, options=("--legacy-package", "package"))
    assert done.stdout == "done\n", done.stderr


@pytest.mark.slow
def test_keras_is_keras_2_in_packages_that_install_names(run, folders):
    script, _, target = folders
    (target / "package.py").write_text(KERAS_2)
    source = script / "script.py"
    source.write_text(
        "import tpu_estimator_compat\ntpu_estimator_compat.install(['package'])\n"
        "import package, keras\nassert keras.__version__ > '3'\nprint('done')\n"
    )
    done = run(source, target, command=())
    assert done.stdout == "done\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("script.py",), ("-m", "script")])
def test_a_script_that_needs_keras_2_is_told_its_name(run, folders, words):
    script, _, _ = folders
    (script / "script.py").write_text("from keras.utils.generic_utils import has_arg\n")
    done = run(*words[-1:], options=words[:-1], cwd=script)
    assert "No module named 'keras.utils.generic_utils'" in done.stderr
    assert "Keras 2 is tf_keras" in done.stderr
    assert "--legacy-package" not in done.stderr


def test_errors_of_the_script_itself_do_not(run, folders):
    script, repository, _ = folders
    (repository / "alone.py").write_text("import tensorflow as tf\ntf.nn.no_such_name\n")
    (script / "script.py").write_text("import alone\n")
    done = run(script / "script.py", repository)
    assert done.returncode == 1
    assert "--legacy-package" not in done.stderr


def test_a_package_installed_where_its_source_is(tmp_path, monkeypatch):
    project, site = tmp_path / "project", tmp_path / "site-packages"
    (project / "src").mkdir(parents=True)
    installed(site, "a-project", ["project"], url=project.as_uri(), dir_info={"editable": True})
    installed(site, "another", ["shared"])
    monkeypatch.syspath_prepend(str(site))
    path = PythonPath(os.pathsep.join([str(project / "src"), str(site), ""]))
    assert path.folders == [str(project / "src")]
    assert not path.is_own("project", str(project / "src" / "project.py"))
    assert path.is_own("shared", str(project / "src" / "shared.py"))  # another one of that name
    assert path.is_own("mine", str(project / "src" / "mine.py"))
    assert not path.is_own("mine", str(tmp_path / "mine.py"))
    assert not path.is_own("keras", str(project / "src" / "keras.py"))


def test_this_package_is_never_taken_for_legacy(forks, tmp_path):
    """Not even from a clone below the script's folder."""
    (tmp_path / "tpu_estimator_compat").symlink_to(ROOT / "tpu_estimator_compat")
    (tmp_path / "script.py").write_text(OLD.replace("print(", "tf.placeholder; print("))
    own = {**environment(), "PYTHONPATH": str(tmp_path)}
    done = forks.run(*COMMAND, "script.py", cwd=tmp_path, env=own)
    assert done.stdout == "__main__ TPUEstimator\n", done.stderr
