"""`xlnet-tensorflow` 1.1.2: its classifier, run unchanged."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.old_names.legacy import vendored

from . import text
from .results import record
from .runs import COMMAND, drive, python

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory, clients) -> pathlib.Path:
    home = tmp_path_factory.mktemp("xlnet")
    text.write_text(home / "text.txt")
    text.write_sentencepiece(clients, home)
    config = {"d_head": 16, "d_inner": 64, "d_model": 32, "ff_activation": "gelu"}
    config |= {"n_head": 2, "n_layer": 2, "n_token": 600, "untie_r": True}
    (home / "config.json").write_text(json.dumps(config))
    for part in ("train", "test"):
        for kind in ("pos", "neg"):
            reviews = home / part / kind
            reviews.mkdir(parents=True)
            documents = text.documents(8)
            for i, sentences in enumerate(documents):
                word = "good " if kind == "pos" else "bad "
                (reviews / f"{i}.txt").write_text(word * 5 + sentences[0])
    return home


FLAGS = {
    "adam_epsilon": 1e-8,
    "clamp_len": -1,
    "clip": 1.0,
    "cls_scope": None,
    "decay_method": "poly",
    "dropatt": 0.0,
    "dropout": 0.0,
    "eval_all_ckpt": False,
    "eval_batch_size": 8,
    "eval_split": "dev",
    "gcp_project": None,
    "init": "normal",
    "init_checkpoint": None,
    "init_range": 0.1,
    "init_std": 0.02,
    "is_regression": False,
    "learning_rate": 1e-3,
    "lr_layer_decay_rate": 1.0,
    "master": None,
    "max_save": 0,
    "max_seq_length": 32,
    "min_lr_ratio": 0.0,
    "num_core_per_host": 1,
    "num_hosts": 1,
    "num_passes": 1,
    "overwrite_data": False,
    "predict_batch_size": 8,
    "predict_ckpt": None,
    "predict_threshold": 0.0,
    "shuffle_buffer": 64,
    "spiece_model_file": "pieces.model",
    "summary_type": "last",
    "task_name": "imdb",
    "tpu": None,
    "tpu_job_name": None,
    "tpu_zone": None,
    "train_batch_size": 8,
    "uncased": False,
    "use_bfloat16": False,
    "use_summ_proj": True,
    "warmup_steps": 0,
    "weight_decay": 0.0,
}


@pytest.mark.parametrize("use_tpu", [False, True])
def test_classifier(folder, clients, use_tpu):
    model = f"model{use_tpu}"
    log = drive(
        clients,
        "xlnet.run_classifier",
        folder,
        "--numpy-legacy",
        **FLAGS,
        data_dir=".",
        do_eval=True,
        do_predict=True,
        do_train=True,
        iterations=20,
        model_config_path="config.json",
        model_dir=model,
        output_dir=f"examples{use_tpu}",
        predict_dir=f"predicted{use_tpu}",
        save_steps=20,
        train_steps=60,
        use_tpu=use_tpu,
    )
    assert tf.train.latest_checkpoint(str(folder / model)).endswith("model.ckpt-60")
    assert "Best result | eval_accuracy" in log
    logits = json.loads((folder / f"predicted{use_tpu}" / "imdb.logits.json").read_text())
    assert np.isfinite(logits).all()
    assert np.shape(logits) == (16, 2)
    accuracy = float(log.split("Best result | eval_accuracy ")[1].split()[0])
    assert accuracy >= 0.9  # one word tells the two kinds apart
    kind = "TPUEstimator" if use_tpu else "Estimator"
    record("xlnet-tensorflow 1.1.2", f"run_classifier with {kind}: train, evaluate, predict")


OWN_COPY = """
import tensorflow.compat.v1 as tf
from xlnet import tpu_estimator

CONFIG = tpu_estimator.tpu_config.RunConfig()


def model_fn(features, mode, params):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - 2.0 * tf.reduce_mean(features))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.25).minimize(loss, step)
    return tpu_estimator.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tpu_estimator.TPUEstimator(
    model_fn, train_cache_fn=None, eval_cache_fn=None, model_dir="model", config=CONFIG,
    use_tpu=False, train_batch_size=4,
)
estimator.train(lambda params: tf.data.Dataset.from_tensors(tf.ones([4])).repeat(), steps=2)
print("FOUND", estimator.get_variable_value("w"))
"""


def test_its_copy_of_the_estimator(clients, tmp_path):
    (tmp_path / "script.py").write_text(OWN_COPY)
    log = python(clients, tmp_path, "-m", *COMMAND, "--legacy-package=xlnet", "script.py")
    assert "FOUND 1.5" in log.splitlines()
    assert "xlnet/tpu_estimator.py is a copy of TensorFlow's tpu_estimator.py" in log
    assert "argument train_cache_fn of TPUEstimator" in log
    subclass = clients / "adanet" / "core" / "tpu_estimator.py"
    assert vendored.copy_of_original(subclass.read_bytes()) is None
