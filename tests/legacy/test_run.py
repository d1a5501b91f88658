"""`run`: scripts unchanged, as `__main__`, and nobody else is fooled."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from support import python_path

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """`run(source, *arguments)` writes `script.py` and runs it; gives the finished process."""

    def of(source: str, *arguments: str, options: tuple[str, ...] = (), command: str = "run"):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        words = ["-m", "tpu_estimator_compat", command, *options, "script.py", *arguments]
        return python(*words, folder=tmp_path)

    return of


def python(*words: str, folder: pathlib.Path) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "PYTHONPATH": python_path.joined(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_a_function_in_the_place_of_its_module(run):
    """`from module import *` in a package of TensorFlow 1 hid the module behind its function."""
    done = run("""
        import tensorflow as tf
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


def test_it_is_main(run, tmp_path):
    done = run(
        """
        import json, os, sys
        import __main__
        print(json.dumps({
            "argv": sys.argv,
            "path": sys.path[0],
            "name": __name__,
            "file": __file__,
            "main": __main__.__dict__ is globals(),
            "doc": __doc__,
        }))
        """,
        "--first=1",
        "-h",
        "--",
        "x y",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["argv"] == ["script.py", "--first=1", "-h", "--", "x y"]
    assert (found["name"], found["file"], found["main"]) == ("__main__", "script.py", True)
    assert pathlib.Path(found["path"]) == tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "status"),
    [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('no')", 1), ("raise KeyError(3)", 1)],
)
def test_exit_status(run, ending, status):
    assert run(f"import sys\n{ending}\n").returncode == status


@pytest.mark.slow
def test_flags_and_argparse(run):
    source = """
        import tensorflow as tf
        flags = tf.flags
        flags.DEFINE_integer("steps", 1, "how many")
        def main(argv):
            print("steps", flags.FLAGS.steps, argv)
            return 3
        if __name__ == "__main__":
            tf.app.run()
        """
    done = run(source, "--steps=5", "rest")
    assert "steps 5 ['script.py', 'rest']" in done.stdout
    assert done.returncode == 3
    assert "--steps: how many" in run(source, "--help").stdout


def test_a_traceback_is_the_scripts_own(run, tmp_path):
    (tmp_path / "beside.py").write_text("def fail():\n    raise ValueError('here')\n")
    done = run("# a comment\n\nimport tensorflow as tf\nimport beside\n\nbeside.fail()\n")
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert 'File "script.py", line 6, in <module>' in trace
    assert 'beside.py", line 2, in fail' in trace
    assert "tpu_estimator_compat" not in trace


def test_an_import_that_fails_shows_no_frames_of_ours(run):
    done = run("import tensorflow as tf\nimport no_such_module\n")
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in trace
    assert "tpu_estimator_compat" not in trace
    assert trace.count("File ") == 1


def test_graphs_for_a_script_of_tensorflow_1(run):
    done = run("""
        import tensorflow as tf
        x = tf.placeholder(tf.float32, [None, 3])
        assert x.shape[-1].value == 3
        assert x.shape[0].value is None
        with tf.Session() as session:
            assert session.run(tf.nn.dropout(x, 1.0), {x: [[1, 2, 3]]}).tolist() == [[1, 2, 3]]
        """)
    assert done.returncode == 0, done.stderr


OF_SESSIONS = """
x = tf.placeholder(tf.float32)
with tf.Session() as session:
    print("found", session.run(2 * x, {x: 3}))
"""


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow.compat.v1"])
def test_graphs_for_a_script_whose_modules_alone_know_tensorflow(run, tmp_path, name):
    (tmp_path / "plain.py").write_text("VALUE = 1\n")
    (tmp_path / "model.py").write_text(f"import {name} as tf\n{OF_SESSIONS}")
    done = run("import plain\n\ndef main():\n    import model\n\nmain()\n")
    assert done.stdout == "found 6.0\n", done.stderr


def test_eager_for_a_script_that_says_so_whatever_its_modules_are(run, tmp_path):
    (tmp_path / "old.py").write_text("import tensorflow as tf\nuse = tf.Session\n")
    done = run("""
        import old
        import tensorflow as tf
        tf.random.set_seed(1)
        assert tf.executing_eagerly()
        """)
    assert done.returncode == 0, done.stderr


def test_modules_that_tell_nothing_mean_what_the_script_means(run, tmp_path):
    (tmp_path / "helper.py").write_text("import tensorflow as tf\nscope = tf.name_scope\n")
    old = run("import tensorflow as tf\nimport helper\ntf.Session\nprint(helper.scope)\n")
    assert "name_scope_v1" in old.stdout, old.stderr
    new = run("import tensorflow as tf\nimport helper\ntf.random.set_seed\nprint(helper.scope)\n")
    assert "name_scope_v2" in new.stdout, new.stderr


def test_a_script_that_tells_nothing_is_what_its_modules_are(run, tmp_path):
    (tmp_path / "old.py").write_text("import tensorflow as tf\nuse = tf.Session\n")
    done = run("import old\nimport tensorflow as tf\nprint(tf.executing_eagerly())\n")
    assert done.stdout == "False\n", done.stderr


def test_graphs_for_a_script_of_compat_v1_that_makes_sessions(run):
    done = run(f"import tensorflow.compat.v1 as tf\n{OF_SESSIONS}")
    assert done.stdout == "found 6.0\n", done.stderr


@pytest.mark.slow
def test_a_script_that_does_not_show_its_age_is_told_of_behavior(run):
    source = """
        import tensorflow.compat.v1 as tf
        print("found", type(tf.train.export_meta_graph("graph.meta")))
        """
    done = run(source)
    assert "not supported when eager execution is enabled" in done.stderr
    assert "--behavior v1 runs it with graphs" in done.stderr
    done = run(source, options=("--behavior=v1",))
    assert "found <class" in done.stdout


@pytest.mark.slow
def test_behavior_may_be_asked_for(run):
    source = "import tensorflow.compat.v1 as tf\nprint('eager', tf.executing_eagerly())\n"
    for asked, eager in (("auto", True), ("v2", True), ("v1", False)):
        assert f"eager {eager}" in run(source, options=(f"--behavior={asked}",)).stdout


def test_eager_for_a_script_of_tensorflow_2(run):
    done = run("""
        import tensorflow as tf
        assert tf.executing_eagerly()
        tf.keras.layers.Dense(3)(tf.zeros([1, 2]))
        assert tf.keras.layers.Dense.__module__.startswith("tf_keras"), tf.keras
        assert tf.estimator.Estimator is tf.compat.v1.estimator.Estimator
        @tf.function
        def double(x):
            return 2 * x
        assert float(double(3.0)) == 6
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
        import estimator
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


def test_python_2_is_named(run):
    done = run('import sys\nprint "hello"\n')
    assert done.returncode == 1
    assert 'File "script.py", line 2' in done.stderr
    assert "This looks like Python 2" in done.stderr
    assert "`print x` is `print(x)` now" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("script", ["missing.py", "."])
def test_no_script(tmp_path, script):
    done = python("-m", "tpu_estimator_compat", "run", script, folder=tmp_path)
    assert done.returncode == 2
    assert repr(script) in done.stderr
    assert "Traceback" not in done.stderr


NUMPY = """
    import numpy as np
    assert np.float is float and np.bool is bool and np.product([2, 3]) == 6
    text = np.zeros(2, np.int32).tostring()
    assert text == bytes(8)
    assert np.zeros(1).dtype == np.float64
    assert isinstance(np.linalg.norm(np.ones(3)), np.float64)
    """


@pytest.mark.slow
def test_numpy_legacy(run):
    done = run(NUMPY, options=("--numpy-legacy",))
    assert done.returncode == 0, done.stderr
    done = run(NUMPY)
    assert done.returncode == 1
    assert "--numpy-legacy" in done.stderr
    assert 'File "script.py", line 3' in done.stderr


def test_lines_are_true_with_numpy_legacy(run):
    source = (
        '"""Doc."""\nfrom __future__ import print_function\nx = b"".tostring\n\nraise KeyError\n'
    )
    done = run(
        source.replace(".tostring\n", "\n") + "y = [].tostring()\n", options=("--numpy-legacy",)
    )
    assert 'File "script.py", line 5' in done.stderr


def test_names_that_python_dropped(run):
    done = run("""
        import collections, inspect, time
        from collections import Mapping, OrderedDict
        assert isinstance({}, Mapping) and collections.Mapping is Mapping
        assert inspect.getargspec(lambda a, b=1, *c: 0) == (["a", "b"], "c", None, (1,))
        assert time.clock() <= time.clock()
        """)
    assert done.returncode == 0, done.stderr


def test_modules_of_pythons_that_tensorflow_had_imported(run):
    done = run("""
        import tensorflow as tf
        import distutils
        assert distutils.version.LooseVersion("1.15.5") < distutils.version.LooseVersion("2.0.0")
        """)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_module_by_name(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow as tf\nassert tf.contrib.tpu\n")
    (package / "part.py").write_text("import tensorflow as tf\nNAME = tf.contrib.tpu.TPUConfig\n")
    (package / "script.py").write_text(
        "from package import part\nfrom . import part as same\n"
        "assert part is same\nprint(__name__, part.NAME.__name__, __package__)\n"
    )
    words = ["-m", "tpu_estimator_compat", "run", "-m", "package.script"]
    done = python(*words, folder=tmp_path)
    assert done.stdout.splitlines()[-1:] == ["__main__ TPUConfig package"], done.stderr
    done = python(*words[:-1], "package.missing", folder=tmp_path)
    assert done.returncode == 2
    assert "'package.missing'" in done.stderr


def test_two_runs_and_two_threads_in_one_process(tmp_path):
    """Each finds its own arguments, flags and modules, and leaves nothing behind."""
    (tmp_path / "beside.py").write_text("import tensorflow as tf\ncount = []\n")
    (tmp_path / "script.py").write_text(
        "import sys, tensorflow as tf, beside\n"
        "tf.flags.DEFINE_string('name', '', '')\n"
        "tf.flags.FLAGS(sys.argv)\n"
        "beside.count.append(1)\n"
        "assert len(beside.count) == 1\n"
        "tf.placeholder(tf.float32)\n"
        "print('ran', tf.flags.FLAGS.name)\n"
    )
    (tmp_path / "driver.py").write_text(
        "import sys, threading\n"
        "import tensorflow as tf\n"
        "from tpu_estimator_compat.legacy.script import run\n"
        "before = sys.argv[:], sys.path[:], sys.modules['__main__'], set(dir(tf))\n"
        "threads = [threading.Thread(target=run, args=('script.py', [f'--name={i}']))"
        " for i in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "run('script.py', ['--name=last'])\n"
        "assert tf.executing_eagerly()\n"
        "assert 'beside' not in sys.modules\n"
        "after = sys.argv, sys.path, sys.modules['__main__'], set(dir(tf))\n"
        "assert after == before\n"
        "assert [f for f in sys.meta_path if 'Legacy' in repr(f)] == []\n"
    )
    done = python("driver.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(
        ["ran", "0", "ran", "1", "ran", "2", "ran", "last"]
    )


def test_queues_layers_of_keras_and_the_shards_of_a_tpu_that_is_not_there(run, tmp_path):
    """What scripts for TPUs of 2018 have in common: they train where there is none."""
    (tmp_path / "lines.csv").write_text("".join(f"{i / 8},{i / 4}\n" for i in range(8)))
    done = run("""
        import tensorflow as tf
        from tensorflow.contrib.cluster_resolver.python.training import TPUClusterResolver
        from tensorflow.contrib.tpu.python.tpu import tpu_config, tpu_estimator, tpu_optimizer
        from tensorflow.python import pywrap_tensorflow
        from tensorflow.python.keras import backend as K
        from tensorflow.python.keras.layers import BatchNormalization, Dense

        tf.flags.DEFINE_integer("num_shards", 8, "TPU cores.")
        FLAGS = tf.flags.FLAGS


        def model_fn(features, labels, mode, params):
            hidden = BatchNormalization()(Dense(4)(features), training=True)
            loss = K.mean(K.square(Dense(1)(hidden) - labels))
            optimizer = tpu_optimizer.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
            return tpu_estimator.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


        def input_fn(params):
            names = tf.train.string_input_producer(["lines.csv"])
            _, line = tf.TextLineReader().read(names)
            x, y = tf.decode_csv(line, [[0.0], [0.0]])
            return tf.train.shuffle_batch([[x], [y]], params["batch_size"], 64, 8)


        def main(_):
            config = tpu_config.RunConfig(
                cluster=TPUClusterResolver(""),
                model_dir="model",
                tpu_config=tpu_config.TPUConfig(2, num_shards=FLAGS.num_shards),
            )
            estimator = tpu_estimator.TPUEstimator(
                model_fn, config=config, use_tpu=True, train_batch_size=8
            )
            estimator.train(input_fn, max_steps=4)
            reader = pywrap_tensorflow.NewCheckpointReader(tf.train.latest_checkpoint("model"))
            print(reader.get_tensor("global_step"))


        if __name__ == "__main__":
            tf.app.run()
    """)
    assert done.stdout.split() == ["4"], done.stderr
    assert "num_shards is 8, but there is no TPU, and this machine has 1 replica" in done.stderr
    assert "contains one or more QueueRunners" in done.stderr
