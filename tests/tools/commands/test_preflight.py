import json
import runpy
import sys
import textwrap
from multiprocessing import spawn

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.preflight.targets.tpu import TpuTopology

SCRIPT = """
    import numpy as np
    import tensorflow as tf

    flags = tf.flags
    flags.DEFINE_integer("batch", 32, "")
    flags.DEFINE_bool("print_loss", False, "")
    FLAGS = flags.FLAGS


    def input_fn(params):
        x = np.zeros([64, 8], np.float32)
        data = tf.data.Dataset.from_tensor_slices((x, np.zeros([64], np.int32))).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)


    def model_fn(features, labels, mode, params):
        logits = tf.layers.dense(features, 4)
        if mode == "infer":
            return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if FLAGS.print_loss:
            loss = tf.Print(loss, [loss])
        optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer())
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


    def main(_):
        print("here we go")
        config = tf.contrib.tpu.RunConfig(model_dir="model")
        estimator = tf.contrib.tpu.TPUEstimator(
            model_fn, config=config, train_batch_size=FLAGS.batch, eval_batch_size=FLAGS.batch,
            predict_batch_size=FLAGS.batch, use_tpu=False)
        estimator.train(input_fn, max_steps=100)
        print("trained")
        estimator.evaluate(input_fn, steps=1)
        list(estimator.predict(input_fn))


    if __name__ == "__main__":
        tf.app.run()
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A cache for tests that may find there what others have compiled."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The path of the script; its folder is the working directory, the cache is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    return tmp_path / "script.py"


@pytest.fixture(autouse=True)
def process_given_back(monkeypatch):
    """A script keeps its process, and here this is the process of the tests."""
    for owner, name in ((sys, "argv"), (runpy, "_run_code"), (spawn, "get_preparation_data")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    for name in ("path", "meta_path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    with flagsaver.flagsaver():
        yield
    flags.FLAGS.unparse_flags()
    tf.compat.v1.reset_default_graph()
    tf.compat.v1.enable_v2_behavior()


def preflight(*arguments):
    return main(["preflight", *map(str, arguments)])


def test_a_step_that_compiles_and_fits(script, capsys, kept, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    assert preflight("--topology", "v5e:1x1,v5e:2x2", "--html", "page.html", script) == 0
    printed = capsys.readouterr().out
    assert "compiles and fits on v5e:1x1, v5e:2x2" in printed
    assert "trained" not in printed
    page = (script.parent / "page.html").read_text()
    assert "compiles and fits" in page
    assert not (script.parent / "model").exists()


def test_json_holds_nothing_else(script, capsys, kept, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    assert preflight("--json", "--topology", "v5e:2x2", script) == 0
    result = json.loads(capsys.readouterr().out)
    [report] = result["reports"]
    assert report["verdict"] == "compiles and fits"
    assert report["batch_size"] == 8
    assert report["memory"]["arguments"] > 0
    assert report["collectives"]["all_reduces"] == 2
    assert sum(report["collectives"]["compiled"].values()) >= 1


def test_the_arguments_of_the_script_count(script, capsys):
    assert preflight("--depth", "scan", script, "--print_loss", "--batch=64") == 1
    printed = capsys.readouterr().out
    assert "Print does not run on a TPU" in printed
    assert "script.py:23 in model_fn" in printed
    assert "loss = tf.Print(loss, [loss])" in printed
    [line] = [line for line in printed.splitlines() if line.startswith("global batch")]
    assert line.split()[-1] == "64"


@pytest.mark.parametrize("mode", ["eval", "predict"])
def test_other_modes(script, mode, capsys):
    if mode == "predict":
        text = script.read_text()
        script.write_text(text.replace("estimator.evaluate(input_fn, steps=1)", ""))
    assert preflight("--mode", mode, "--depth", "lower", script) == 2  # not compiled
    printed = capsys.readouterr().out
    assert "depth reached" in printed
    assert "trained" in printed  # the script went on behind train()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise OSError('no data')", ["OSError: no data", "no TPUEstimator reached train()"]),
        ("print('nothing to do')", ["no TPUEstimator reached train()"]),
        ("import sys; sys.exit(3)", ["status 3"]),
        (
            "import tensorflow as tf\n"
            "tf.estimator.Estimator(lambda features: None, 'model').train(lambda: None, steps=1)\n",
            ["the script uses Estimator, which does not run on TPU"],
        ),
    ],
    ids=["fails", "does not train", "leaves", "knows no tpu"],
)
def test_a_script_that_reaches_no_training(script, capsys, text, said):
    script.write_text(text)
    assert preflight(script) == 2
    errors = capsys.readouterr().err
    assert all(words in errors for words in said)


def test_results_that_nobody_computed_are_not_invented(script, capsys):
    text = script.read_text().replace("estimator.train(input_fn, max_steps=100)", "")
    script.write_text(text)
    assert preflight(script) == 2
    assert "--mode eval" in capsys.readouterr().err


def test_estimators_train_again_afterwards(script):
    from tpu_estimator_compat.estimator.estimator import Estimator

    before = Estimator.train
    assert preflight("--depth", "scan", script) == 2
    assert Estimator.train is before


def test_without_the_compiler_the_report_says_how_to_get_it(script, capsys, monkeypatch):
    monkeypatch.setitem(TpuTopology.packages, "libtpu", "99.0")
    assert preflight(script) == 2
    printed = " ".join(capsys.readouterr().out.split())
    assert "pip install 'jax>=0.10.2,<0.13' 'jaxlib>=0.10.2,<0.13' 'libtpu==0.0.51'" in printed
    assert "could not tell" in printed


def test_a_gpu_needs_a_compiler_of_its_own(script, capsys):
    """Which no environment of the tests has: what else there is to say of the step is said."""
    assert preflight("--topology", "h100:8", script) == 2
    printed = " ".join(capsys.readouterr().out.split())
    assert "Compiling for a GPU needs jax==0.10.2, jaxlib==0.10.2, jax-cuda12-pjrt" in printed
    assert "no jax-cuda12-pjrt, no jax-cuda12-plugin, no nvidia-cuda-nvcc-cu12" in printed
    assert "'nvidia-cuda-nvcc-cu12==12.9.86'`. No GPU is needed." in printed
    assert "replicas 8" in printed
    assert "memory of a device 59.33 GiB (75%)" in printed


def test_a_compiler_that_takes_too_long(script, capsys):
    assert preflight("--time-limit", "0.5", script) == 2
    assert "did not end within 0.5 s" in " ".join(capsys.readouterr().out.split())


def test_the_second_time_comes_from_the_cache(script, capsys):
    for cached in ("no", "yes"):
        assert preflight("--topology", "v5e:1x1", script) == 0
        lines = capsys.readouterr().out.splitlines()
        [line] = [line for line in lines if line.startswith("from the cache")]
        assert line.split()[-1] == cached
