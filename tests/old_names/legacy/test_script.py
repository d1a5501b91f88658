import subprocess
import sys
import zipfile

import pytest

from .conftest import environment

FACTS = '''"""What a script can see and do."""
import atexit, builtins, inspect, logging, os, pickle, runpy, sys, threading
from unittest import mock
import __main__

class Own: pass

def told(when):
    found = logging.getLogger("own").level, logging.root.handlers != [], os.environ.get("ADDED")
    print(when, sys.argv, sys.path[0], found, sys.modules["__main__"].Own, main_only, flush=True)
    import beside_too

def later():
    threading.main_thread().join()
    told("thread")

print(sys.argv, sys.path, sys.flags, sorted(os.environ), __name__, __file__, __doc__, __spec__)
print(sorted(vars()), type(__builtins__).__mro__[-2:], type(__loader__), __loader__.path)
print(__package__, __cached__, __main__.__dict__ is globals(), hasattr(__builtins__, "print"))
print(__builtins__.print is print, sys.exc_info(), sys.stdin.read())
os.makedirs("elsewhere", exist_ok=True)
os.chdir("elsewhere")
print(inspect.getsource(Own), pickle.loads(pickle.dumps(Own)), inspect.getsourcefile(Own))
main_only = builtins.of_all = 3
import beside
print(of_all, beside.of_all_too, [os.path.basename(name) for name in (beside.__file__, __file__)])
with mock.patch("builtins.open", lambda name: name + " is mocked"):
    print(open("x"), beside.opened("x"))
__builtins__.set_in_main = 4
print(builtins.set_in_main, beside.set_in_main_too())
by_path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "by_path.py")
print(sorted(runpy.run_path(by_path, run_name="other").items()))
print(runpy.run_module("beside_too", run_name="third")["NAME"])
os.environ["ADDED"] = "1"
logging.basicConfig(level=5)
logging.getLogger("own").setLevel(7)
atexit.register(told, "atexit")
threading.Thread(target=later).start()
'''
BESIDE = """import builtins
of_all_too = of_all
def opened(name): return open(name)
def set_in_main_too(): return set_in_main
"""
PATHS = ["script.py", "./script.py", "link.py"]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_it_is_as_by_python(tmp_path, path):
    """In all that a script can see and do, in its threads and atexit functions, too."""
    for name, text in {
        "sub/script": FACTS,
        "sub/beside": BESIDE,
        "sub/beside_too": "NAME = __name__\n",
        "sub/by_path": "from beside_too import NAME\nNAMES = __name__, __spec__, __package__\n"
        "__builtins__ = None\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "link.py").symlink_to("sub/script.py")
    (tmp_path / "script.py").write_text("raise SystemExit('of the wrong folder')")
    where = tmp_path if path == "link.py" else tmp_path / "sub"
    compared(where, [path, "--first=1", "-h", "--", "x y"])


ENDINGS = {
    "a number": "sys.exit(7)",
    "none": "sys.exit()",
    "too large": "sys.exit(257)",
    "a text": "sys.exit('no')",
    "another object": "raise SystemExit((1, 2))",
    "an error": "def fail(): raise KeyError(3) from ValueError(4)\nfail()",
    "an error of an error": "try: 1 / 0\nfinally: raise KeyError(3)",
    "a syntax error": "eval('1 +')",
    "a hook for errors": "sys.excepthook = lambda *error: print('hook', error[0])\n1 / 0",
    "an exit of the hook": "sys.excepthook = lambda *error: sys.exit(5)\n1 / 0",
    "atexit": "import atexit\natexit.register(lambda: print(sys.last_value))\nraise KeyError(3)",
    "at once": "import os\nos._exit(9)",
    "exit": "exit(4)",
    "by os.kill": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDINGS)
def test_it_ends_as_by_python(tmp_path, name):
    (tmp_path / "script.py").write_text(f"import sys\n{ENDINGS[name]}\n")
    compared(tmp_path, ["script.py"])


def compared(folder, words):
    """Runs a script by Python, and by `run`."""
    python, ours = (
        subprocess.run(
            [sys.executable, *command, *words],
            cwd=folder,
            env={**environment(), "TF_CPP_MIN_LOG_LEVEL": "3"},
            input="given",
            capture_output=True,
            text=True,
        )
        for command in ([], ["-m", "tpu_estimator_compat", "run"])
    )
    assert ours.stdout == python.stdout, ours.stderr
    assert ours.returncode == python.returncode
    assert ours.stderr.endswith(python.stderr)  # TensorFlow's import has lines before


CHILDREN = """
import concurrent.futures, multiprocessing, os, sys
import tensorflow as tf
RATE = tf.estimator.RunConfig(keep_checkpoint_max=2).keep_checkpoint_max
import beside

class Own:
    value = 1

def double(x):
    assert type(x).__name__ == "Own" and tf.contrib and not tf.executing_eagerly()
    return RATE * beside.RATE * x.value, sys.argv[1:], os.environ["ADDED"], os.path.isabs(__file__)

if __name__ == "__main__":
    os.environ["ADDED"] = "1"
    os.chdir("/")
    for method in sys.argv[1:]:
        context = multiprocessing.get_context(method)
        process = context.Process(target=double, args=(Own(),))
        process.start()
        process.join()
        print(process.exitcode)
        with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            print(list(pool.map(double, [Own()])), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["script.py"], ["-m", "package.script"]], ids=["path", "module"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_have_the_old_names(python, tmp_path, words, method):
    folder = tmp_path / "package" if words[0] == "-m" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(CHILDREN)
    (tmp_path / "beside.py").write_text(
        "import tensorflow as tf\nRATE = tf.estimator.RunConfig().save_summary_steps\n"
    )
    done = python("-m", "tpu_estimator_compat", "run", *words, method)
    assert done.stdout == f"0\n[(200, ['{method}'], '1', True)]\n", done.stderr


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
