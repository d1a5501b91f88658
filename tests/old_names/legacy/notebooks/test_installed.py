"""`install()`: legacy imports for the calling module. And importing changes nothing."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

from ..conftest import environment


@pytest.fixture
def checks(python):
    """`checks(program)` runs a program that checks by itself."""

    def of(source: str) -> None:
        done = python("-c", textwrap.dedent(source))
        assert done.returncode == 0, done.stderr

    return of


def in_a_process(folder: pathlib.Path, source: str) -> None:
    """Runs such a program where nothing has imported TensorFlow before."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_rest_of_a_module(checks, tmp_path):
    (tmp_path / "beside.py").write_text("from tensorflow.contrib import tpu\n")
    (tmp_path / "late.py").write_text("import tensorflow\n")
    checks(
        """
        import builtins, sys
        plain = builtins.__import__
        import tensorflow as real
        import tpu_estimator_compat
        tpu_estimator_compat.install()
        import tensorflow as tf
        from tensorflow.contrib import tpu
        import beside, keras
        assert tf.placeholder is real.compat.v1.placeholder
        assert beside.tpu.TPUEstimator is tpu.TPUEstimator is tf.estimator.tpu.TPUEstimator
        assert keras.src.backend.tensorflow.core.tf is real
        assert tf.executing_eagerly()
        tpu_estimator_compat.uninstall()
        import tensorflow as again, late
        assert again is late.tensorflow is real
        assert builtins.__import__ is plain
        assert not hasattr(real, "contrib")
        """
    )


def test_the_api_of_tensorflow_2(tmp_path):
    # A process: the script is the first to import TensorFlow.
    in_a_process(
        tmp_path,
        """
        import tpu_estimator_compat
        tpu_estimator_compat.install(api="v2")
        import tensorflow as tf
        assert not hasattr(tf, "placeholder")
        assert tf.estimator.Estimator
        try:
            tpu_estimator_compat.install(api="v3")
        except ValueError as error:
            assert "'v3'" in str(error)
        else:
            raise AssertionError
        """,
    )


def test_a_package_that_came_too_early(checks, tmp_path):
    (tmp_path / "package.py").write_text("")
    checks(
        """
        import package, tpu_estimator_compat
        try:
            tpu_estimator_compat.install(["package"])
        except ValueError as error:
            assert "package" in str(error)
        else:
            raise AssertionError
        """
    )


@pytest.mark.parametrize("module", ["tpu_estimator_compat", "tpu_estimator_compat.v1"])
def test_importing_changes_nothing_in_tensorflow(checks, tmp_path, module):
    source = f"""
        import builtins, sys
        import tensorflow as tf
        import keras, tf_keras  # which change TensorFlow by themselves

        def everything():
            found, todo = {{}}, [m for n, m in sys.modules.items() if n.startswith("tensorflow")]
            for module in todo:
                found[id(module)] = {{n: id(v) for n, v in vars(module).items() if n[:2] != "__"}}
            return found

        tf.compat.v1.layers  # lazy modules fill themselves when they are first looked at
        before = everything()
        imports = builtins.__import__
        import {module} as ours
        if hasattr(ours, "contrib"):
            ours.contrib.tpu.TPUEstimator, ours.layers.dense, ours.nn.rnn_cell, ours.estimator
        after = everything()
        for module, names in before.items():
            changed = {{n for n, v in names.items() if after[module].get(n) != v}}
            assert not changed, changed
        assert builtins.__import__ is imports
        """
    if module.endswith(".v1"):
        # A process: scripts import it this way, and nothing has imported anything before.
        in_a_process(tmp_path, source)
    else:
        checks(source)
