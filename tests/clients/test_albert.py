"""`albert-tensorflow` 1.1: ALBERT's scripts, run unchanged, on a SentencePiece model made here."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from . import text
from .results import record
from .runs import drive, numbers

pytestmark = pytest.mark.full

LENGTH = 32
CLUSTER = {
    "use_tpu": False,
    "tpu_name": None,
    "tpu_zone": None,
    "gcp_project": None,
    "master": None,
    "num_tpu_cores": 8,
    "iterations_per_loop": 10,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, clients) -> pathlib.Path:
    home = tmp_path_factory.mktemp("albert")
    text.write_text(home / "text.txt")
    text.write_sentencepiece(clients, home)
    text.write_vocabulary(home / "vocab.txt")
    sizes = {"embedding_size": 16, "num_hidden_groups": 1, "inner_group_num": 1}
    text.write_config(home / "config.json", 600, **sizes)
    text.write_mrpc(home)
    text.write_pretraining(clients, home, LENGTH, dupe_factor=1)
    return home


@pytest.fixture(scope="module")
def pretrained(folder, clients) -> str:
    drive(
        clients,
        "albert.run_pretraining",
        folder,
        albert_config_file="config.json",
        do_train=True,
        do_eval=True,
        eval_batch_size=16,
        export_dir="exported",
        init_checkpoint=None,
        init_from_group0=False,
        input_file="pretraining.tfrecord",
        learning_rate=0.01,
        masked_lm_budget=0,
        max_eval_steps=4,
        max_predictions_per_seq=5,
        max_seq_length=LENGTH,
        num_train_steps=30,
        num_warmup_steps=3,
        optimizer="lamb",
        output_dir="pretrained",
        poly_power=1.0,
        save_checkpoints_steps=10,
        start_warmup_step=0,
        train_batch_size=16,
        **CLUSTER,
    )
    return str(folder / "pretrained" / "model.ckpt-30")


def test_pretraining(folder, pretrained):
    found = numbers(folder / "pretrained" / "eval_results.txt")
    assert found["global_step"] == 30
    assert found["masked_lm_loss"] < np.log(600)
    assert {"masked_lm_accuracy", "sentence_order_accuracy"} < set(found)
    names = dict(tf.train.list_variables(pretrained))
    of_layer = "bert/encoder/transformer/group_0/inner_group_0/"
    assert names[f"{of_layer}attention_1/self/query/kernel/adam_m"] == [32, 32]
    record("albert-tensorflow 1.1", "run_pretraining with LAMB: train, evaluate")


def test_classifier(folder, pretrained, clients):
    drive(
        clients,
        "albert.run_classifier",
        folder,
        albert_config_file="config.json",
        data_dir=".",
        do_eval=True,
        do_lower_case=True,
        do_predict=True,
        do_train=True,
        eval_batch_size=8,
        init_checkpoint=pretrained,
        learning_rate=1e-3,
        max_seq_length=LENGTH,
        num_train_epochs=2.0,
        output_dir="classifier",
        predict_batch_size=8,
        save_checkpoints_steps=8,
        spm_model_file="pieces.model",
        task_name="mrpc",
        train_batch_size=8,
        use_pooled_output=True,
        vocab_file="pieces.vocab",
        warmup_proportion=0.1,
        **CLUSTER,
    )
    found = numbers(folder / "classifier" / "eval_results.txt")
    assert found["global_step"] == 16
    rows = (folder / "classifier" / "test_results.tsv").read_text().splitlines()
    probabilities = np.array([[float(x) for x in row.split("\t")] for row in rows])
    assert probabilities.shape == (20, 2)
    accuracy = np.mean(probabilities.argmax(1) == [label for *_, label in text.pairs(84)[64:]])
    np.testing.assert_allclose(found["eval_accuracy"], accuracy, atol=1e-6)
    record("albert-tensorflow 1.1", "run_classifier: train from init_checkpoint, evaluate, predict")
