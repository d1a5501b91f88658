import importlib
import pathlib
import sys

import pytest

from tpu_estimator_compat.old_names.legacy import imports, overlay
from tpu_estimator_compat.old_names.legacy.dialect import Dialect


@pytest.mark.parametrize("told", ["tf.app", "tf.function"])
def test_a_function_in_the_place_of_its_module(run, told):
    """`from module import *` in a package of TensorFlow 1 hid the module behind its function."""
    done = run(f"""
        import tensorflow as tf
        {told}
        import tensorflow.contrib.framework.python.ops.arg_scope
        from tensorflow.contrib.framework.python.ops import add_arg_scope
        from tensorflow.contrib.framework.python.ops import arg_scope
        from tensorflow.contrib.framework.python.ops.arg_scope import arg_scope as same

        @add_arg_scope
        def function(x, y=1):
            return x + y

        with arg_scope([function], y=5):
            print(function(1))
        with tf.contrib.framework.python.ops.arg_scope([function], y=6):
            print(function(1))
        print(same is arg_scope)
    """)
    assert done.stdout.split() == ["6", "7", "True"], done.stderr


def test_all_names_are_imported_by_a_star(run):
    done = run("""
        import tensorflow as tf
        from tensorflow.contrib.framework import *
        from tensorflow.contrib.framework.python.ops import *
        from tensorflow.contrib.tpu.python.tpu.tpu_estimator import *

        print(callable(arg_scope), callable(get_or_create_global_step), callable(with_shape))
        print(TPUEstimator is tf.estimator.tpu.TPUEstimator, zero_initializer)
    """)
    expected = "True True True\nTrue <tf.contrib.framework.zero_initializer: not provided>\n"
    assert done.stdout == expected, done.stderr


def test_a_call_of_import_with_a_list_returns_the_module(run):
    done = run("""
        for names in (["_"], [""], ["*"], ["TPUEstimator"]):
            found = __import__("tensorflow.contrib.tpu", fromlist=names)
            print(found.TPUEstimator.__name__)
        print(__import__("tensorflow.python.framework", fromlist=["ops"]).ops.Tensor.__name__)
    """)
    expected = ["TPUEstimator"] * 4 + ["Tensor"]
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("names", [["no_such"], ("no_such",)])
def test_an_error_within_a_submodule_is_raised(monkeypatch, names):
    real = overlay.submodule

    def submodule(package, name):
        if name == "no_such":
            raise ModuleNotFoundError("No module named 'h5'", name="h5")
        return real(package, name)

    monkeypatch.setattr(overlay, "submodule", submodule)
    with pytest.raises(ModuleNotFoundError, match="h5"):
        imports.imported("tensorflow.python.framework", names, Dialect.V1)


def test_every_way_to_import_a_dead_name(run, tmp_path):
    (tmp_path / "beside.py").write_text(
        "from tensorflow.contrib import tpu as contrib_tpu\n"
        "import tensorflow.compat.v1 as tf\n"
        "ESTIMATOR = contrib_tpu.TPUEstimator\n"
        "assert tf.estimator.tpu.TPUEstimator is ESTIMATOR\n"
    )
    done = run("""
        import importlib
        import sys
        import beside
        import tensorflow as tf
        import tensorflow.compat.v1 as tf1
        import tensorflow.contrib.tpu as a
        import tensorflow.contrib.tpu.python.tpu.tpu_config as b
        import tensorflow.python.tpu.tpu_estimator as c
        from tensorflow import estimator
        from tensorflow.compat.v1 import estimator as d
        from tensorflow.contrib import tpu
        from tensorflow.contrib.tpu import TPUEstimator
        from tensorflow.python.estimator import estimator as e
        from tensorflow.python.framework import ops
        from tensorflow_estimator.python.estimator.tpu import tpu_estimator as f

        found = {x.TPUEstimator for x in (a, c, tpu, estimator.tpu, d.tpu, f, tf.contrib.tpu)}
        found |= {TPUEstimator, beside.ESTIMATOR, tf1.estimator.tpu.TPUEstimator}
        assert len(found) == 1, found
        assert importlib.import_module("tensorflow.contrib.tpu").TPUEstimator in found
        assert e.Estimator is tf.estimator.Estimator
        assert b.TPUConfig is tpu.TPUConfig
        assert ops.get_default_graph() is tf.get_default_graph()
        assert tf.placeholder is tf1.placeholder
        """)
    assert done.returncode == 0, done.stderr


def test_keras_and_others_see_the_real_tensorflow(run):
    done = run("""
        import tensorflow as tf
        import keras
        import sys
        import tensorflow.contrib.tpu
        real = sys.modules["tensorflow"]
        assert tf is not real
        assert keras.src.backend.tensorflow.core.tf is real
        assert not hasattr(real, "estimator") and not hasattr(real, "contrib")
        assert not any(name.startswith("tensorflow.contrib") for name in sys.modules)
        import typing
        assert typing.get_type_hints.__builtins__ is not __builtins__
        """)
    assert done.returncode == 0, done.stderr


def test_a_script_may_have_its_own_estimator(run, tmp_path):
    """A module beside the script goes before everything else, whatever its name."""
    (tmp_path / "estimator.py").write_text("import tensorflow as tf\nMINE = tf.estimator\n")
    done = run("""
        import os, estimator
        import tensorflow as tf
        from tensorflow import estimator as theirs
        assert estimator.MINE.Estimator is theirs.Estimator
        """)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_circular_imports(run, tmp_path):
    (tmp_path / "a.py").write_text("import tensorflow as tf\nimport b\nx = tf.contrib.tpu\n")
    (tmp_path / "b.py").write_text("import a\nfrom tensorflow.contrib import tpu\n")
    assert run("import a, b\nassert a.x.TPUEstimator is b.tpu.TPUEstimator\n").returncode == 0
    (tmp_path / "b.py").write_text("from a import x\n")
    done = run("import a\n")
    assert "partially initialized module 'a'" in done.stderr


@pytest.mark.slow
def test_refused_and_unknown_names(run):
    done = run("""
        from tensorflow.estimator import BoostedTreesClassifier  # importing it is fine
        print("went on")
        BoostedTreesClassifier([])
        """)
    assert "went on" in done.stdout
    assert "NotImplementedError: tf.estimator.BoostedTreesClassifier" in done.stderr
    assert "Train trees" in done.stderr
    done = run("from tensorflow.contrib import no_such_thing\n")
    assert "ImportError: tensorflow.contrib.no_such_thing is not in TensorFlow" in done.stderr
    done = run("import tensorflow.contrib.no_such_thing\n")
    assert "ModuleNotFoundError: tf.contrib.no_such_thing is not in" in done.stderr


def test_import_lines_of_public_code(run):
    """Lines of public code, and lines made of paths of TensorFlow 1.4 to 2.0: each by itself."""
    table = (pathlib.Path(__file__).parent / "import_lines.txt").read_text().splitlines()
    lines = [line for line in table if not line.startswith("#")]
    assert len(lines) == len({*lines}) > 350
    done = run(f"""
        import tensorflow as tf

        tf.app  # of TensorFlow 1
        failed = []
        for line in {lines!r}:
            try:
                exec(line, {{"__builtins__": __builtins__}})
            except Exception as error:
                failed.append((line, repr(error)))
        print(failed)
    """)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


NOT_HERE = (
    "from tensorflow.contrib.data.python.framework import function",
    "from tensorflow.contrib.framework.python.framework import experimental",
    "from tensorflow.contrib.learn.python.learn.estimators import _sklearn",
    "from tensorflow.contrib.tpu.python.tpu import keras_tpu_variables",
    "from tensorflow.python.training import checkpointable",
)
"""Lines of public code, with private names of TensorFlow, that fail."""


def test_failing_imports_of_public_code_name_the_module(run):
    done = run(f"""
        for line in {NOT_HERE!r}:
            try:
                exec(line, {{"__builtins__": __builtins__}})
            except ImportError as error:
                print(line.rpartition(" ")[2] in str(error))
    """)
    assert done.stdout.split() == ["True"] * len(NOT_HERE), done.stdout + done.stderr


def test_a_name_that_no_namespace_has_is_no_module(run):
    """Inside a namespace of tf.contrib a module may be meant, but only where it must be one."""
    done = run("""
        from tensorflow.contrib.opt.python.ops.anything import AdamWOptimizer
        try:
            from tensorflow.contrib.crf.python.ops import no_such_thing
        except ImportError as error:
            print("tensorflow.contrib.crf" in str(error), "no_such_thing" in str(error))
        try:
            import tensorflow.contrib.nothing.python.ops
        except ImportError as error:
            print("tf.contrib.nothing" in str(error))
    """)
    assert done.stdout.split() == ["True", "True", "True"], done.stdout + done.stderr


def test_a_link_to_a_legacy_module_is_judged_by_what_it_links_to(tmp_path, monkeypatch):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere.py"
    folder.mkdir()
    elsewhere.write_text("VALUE = 1\n")
    (folder / "linked_module.py").symlink_to(elsewhere)
    found = imports.LegacyImports([str(folder)])
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    assert importlib.import_module("linked_module").VALUE == 1
    assert sys.modules.pop("linked_module").__name__ not in found.loaded
