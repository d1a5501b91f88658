import json
import pathlib
import zipfile

import pytest


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


@pytest.mark.slow
def test_a_module_by_name(python, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow as tf\nassert tf.contrib.tpu\n")
    (package / "part.py").write_text("import tensorflow as tf\nNAME = tf.contrib.tpu.TPUConfig\n")
    (package / "script.py").write_text(
        "from package import part\nfrom . import part as same\n"
        "assert part is same\nprint(__name__, part.NAME.__name__, __package__)\n"
    )
    words = ["-m", "tpu_estimator_compat", "run", "-m", "package.script"]
    done = python(*words)
    assert done.stdout.splitlines()[-1:] == ["__main__ TPUConfig package"], done.stderr
    done = python(*words[:-1], "package.missing")
    assert done.returncode == 2
    assert "'package.missing'" in done.stderr


def test_two_runs_and_two_threads_in_one_process(python, tmp_path):
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
        "from tpu_estimator_compat.old_names.legacy.script import run\n"
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
    done = python("driver.py")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(
        ["ran", "0", "ran", "1", "ran", "2", "ran", "last"]
    )


def test_what_a_script_sets_for_its_process_is_given_back(python, tmp_path):
    """A run within a run, too, gives back what the outer one had set."""
    (tmp_path / "script.py").write_text(
        "import logging, os, sys, warnings\n"
        "import tensorflow as tf\n"
        "from absl import flags, logging as absl_logging\n"
        "if len(sys.argv) > 1:\n"
        "    from tpu_estimator_compat.old_names.legacy.script import run\n"
        "    run('script.py')\n"
        "    assert 'ADDED' not in os.environ\n"
        "os.environ.update(ADDED='1', CHANGED='1')\n"
        "del os.environ['REMOVED']\n"
        "warnings.simplefilter('error')\n"
        "tf.logging.set_verbosity(tf.logging.ERROR)\n"
        "absl_logging.set_verbosity('debug')\n"
        "logging.basicConfig(level=5)\n"
        "logging.getLogger('theirs').setLevel(7)\n"
        "logging.disable(30)\n"
        "flags.FLAGS(sys.argv[:1] + ['--stderrthreshold=info'])\n"
    )
    (tmp_path / "driver.py").write_text(
        "import logging, os, warnings\n"
        "import tensorflow as tf\n"
        "from absl import flags, logging as absl_logging\n"
        "from tpu_estimator_compat.old_names.legacy.script import run\n"
        "theirs = logging.getLogger('theirs')\n"
        "flags.FLAGS(['driver.py'])\n"
        "os.environ.update(CHANGED='0', REMOVED='0')\n"
        "def state():\n"
        "    some = [tf.get_logger(), absl_logging.get_absl_logger(), theirs]\n"
        "    return [dict(os.environ), list(warnings.filters), logging.root.manager.disable,\n"
        "            [(each.level, list(each.handlers)) for each in [logging.root, *some]],\n"
        "            absl_logging.get_verbosity(), flags.FLAGS.stderrthreshold,\n"
        "            flags.FLAGS.is_parsed()]\n"
        "before = state()\n"
        "run('script.py', ['again'])\n"
        "for a, b in zip(before, state(), strict=True):\n"
        "    assert a == b, (a, b)\n"
        "print('given back')\n"
    )
    done = python("driver.py")
    assert done.stdout.split() == ["given", "back"], done.stderr


def test_a_script_that_installs_legacy_imports_itself(run, tmp_path):
    """As a notebook does that was written for this package."""
    (tmp_path / "beside.py").write_text("import tensorflow as tf\nprint(tf.contrib.tpu.__name__)\n")
    done = run("import tpu_estimator_compat\ntpu_estimator_compat.install()\nimport beside\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("tpu")


def test_what_lies_in_an_archive_is_loaded_as_it_is(run, tmp_path):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", "VALUE = 3\n")
    done = run(
        "import sys\nsys.path.insert(0, 'archive.zip')\nimport zipped\nprint(zipped.VALUE)\n"
    )
    assert done.stdout == "3\n", done.stderr


def test_queues_keras_layers_and_shards_of_an_absent_tpu(run, tmp_path):
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


def test_a_keras_model_that_was_for_a_tpu(run):
    """In graphs, with an optimizer of `tf.train`, as scripts of Colab had it."""
    done = run("""
        import os

        import numpy as np
        import tensorflow as tf

        x = np.random.RandomState(0).randn(64, 4).astype(np.float32)
        y = x.sum(axis=1, keepdims=True)
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        worker = "grpc://" + os.environ.get("COLAB_TPU_ADDR", "localhost:8470")
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver("")
        model = tf.contrib.tpu.keras_to_tpu_model(
            model, strategy=tf.contrib.tpu.TPUDistributionStrategy(resolver)
        )
        model.compile(tf.train.AdamOptimizer(0.1), "mse", ["mae"])
        model.fit(x, y, epochs=20, batch_size=16, verbose=0)
        loss, error = model.evaluate(x, y, verbose=0)
        weights = model.sync_to_cpu().get_weights()
        print(tf.executing_eagerly(), loss < 0.1, model.predict(x).shape, len(weights))
    """)
    assert done.stdout.split("\n")[-2] == "False True (64, 1) 2", done.stdout + done.stderr
