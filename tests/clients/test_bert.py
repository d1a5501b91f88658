"""`bert-tensorflow` 1.0.4: BERT's scripts of 2018, run unchanged."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from . import text
from .results import record
from .runs import final_loss, numbers, python, run

LENGTH = 32
PRETRAINING = {
    "input_file": "pretraining.tfrecord",
    "do_train": True,
    "do_eval": True,
    "bert_config_file": "config.json",
    "train_batch_size": 16,
    "eval_batch_size": 16,
    "max_seq_length": LENGTH,
    "max_predictions_per_seq": 5,
    "num_warmup_steps": 5,
    "max_eval_steps": 4,
    "learning_rate": 5e-3,
    "save_checkpoints_steps": 20,
    "iterations_per_loop": 10,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, clients) -> pathlib.Path:
    home = tmp_path_factory.mktemp("bert")
    text.write_text(home / "text.txt")
    text.write_vocabulary(home / "vocab.txt")
    text.write_config(home / "config.json", len((home / "vocab.txt").read_text().split()))
    text.write_mrpc(home)
    text.write_squad(home / "squad.json")
    text.write_pretraining(clients, home, LENGTH, dupe_factor=2)
    return home


@pytest.fixture(scope="module")
def pretrained(folder, clients) -> str:
    log = _pretrain(clients, folder, "pretrained", num_train_steps=60)
    assert np.isfinite(final_loss(log))
    return str(folder / "pretrained" / "model.ckpt-60")


def _pretrain(clients, folder, output: str, *options: str, **flags: object) -> str:
    given = {**PRETRAINING, "output_dir": output, **flags}
    return run(clients, "bert.run_pretraining", folder, *options, **given)


def _classify(clients, folder, output: str, *options: str, **flags: object) -> str:
    given = {
        "task_name": "MRPC",
        "data_dir": ".",
        "output_dir": output,
        "vocab_file": "vocab.txt",
        "bert_config_file": "config.json",
        "max_seq_length": LENGTH,
        "train_batch_size": 8,
        "num_train_epochs": 2,
        "learning_rate": 1e-3,
        "save_checkpoints_steps": 8,
    }
    return run(clients, "bert.run_classifier", folder, *options, **{**given, **flags})


@pytest.mark.full
def test_pretraining(folder, pretrained):
    found = numbers(folder / "pretrained" / "eval_results.txt")
    assert found["global_step"] == 60
    assert found["masked_lm_loss"] < np.log(400)  # better than guessing
    assert {"masked_lm_accuracy", "next_sentence_accuracy", "next_sentence_loss"} < set(found)
    names = dict(tf.train.list_variables(pretrained))
    assert names["bert/encoder/layer_1/attention/self/query/kernel/adam_v"] == [32, 32]
    assert names["bert/encoder/layer_0/output/LayerNorm/gamma"] == [32]
    record("bert-tensorflow 1.0.4", "run_pretraining: train, evaluate")


@pytest.mark.full
def test_pretraining_on_two_replicas(folder, pretrained, clients):
    """The global batch of one replica, split: the same model within what shuffling changes."""
    flags = {"use_tpu": True, "num_tpu_cores": 2, "init_checkpoint": pretrained}
    log = _pretrain(clients, folder, "two", "--logical-cpus=2", num_train_steps=10, **flags)
    assert "on 2 local replica(s)" in log
    found = numbers(folder / "two" / "eval_results.txt")
    before = numbers(folder / "pretrained" / "eval_results.txt")
    assert found["global_step"] == 10
    assert found["loss"] < 1.2 * before["loss"]
    record("bert-tensorflow 1.0.4", "run_pretraining with use_tpu, on two replicas")


@pytest.mark.full
def test_pretraining_on_jax(folder, pretrained, clients):
    devices = 4
    flags = {"use_tpu": True, "num_tpu_cores": devices, "init_checkpoint": pretrained}
    output = "pretrained_on_jax"
    options = ("--runtime=jax", f"--logical-cpus={devices}")
    log = _pretrain(clients, folder, output, *options, num_train_steps=10, **flags)
    assert f"Running train with JAX on {devices} cpu device(s)" in log
    assert f"Running eval with JAX on {devices} cpu device(s)" in log
    found = numbers(folder / output / "eval_results.txt")
    before = numbers(folder / "pretrained" / "eval_results.txt")
    assert found["global_step"] == 10
    assert found["loss"] < 1.2 * before["loss"]
    record("bert-tensorflow 1.0.4", "run_pretraining with use_tpu, on four devices of JAX")


@pytest.mark.full
def test_classifier_on_jax(folder, pretrained, clients):
    """The predictions of its checkpoint are those of TensorFlow's replicas."""
    devices = 4
    flags = {"use_tpu": True, "num_tpu_cores": devices, "init_checkpoint": pretrained}
    output = "classifier_on_jax"
    options = ("--runtime=jax", f"--logical-cpus={devices}")
    _classify(clients, folder, output, *options, do_train=True, do_eval=True, **flags)
    found = numbers(folder / output / "eval_results.txt")
    assert found["global_step"] == 16
    rows = []
    for where in options, options[1:]:
        _classify(clients, folder, output, *where, do_predict=True, **flags)
        lines = (folder / output / "test_results.tsv").read_text().splitlines()
        rows.append([[float(x) for x in line.split("\t")] for line in lines])
    assert np.shape(rows) == (2, 20, 2)
    np.testing.assert_allclose(*rows, rtol=1e-4)
    record(
        "bert-tensorflow 1.0.4",
        "run_classifier with use_tpu, on four devices of JAX: train, evaluate, predict",
    )


@pytest.mark.slow
def test_classifier(folder, pretrained, clients):
    flags = {"do_train": True, "do_eval": True, "do_predict": True, "init_checkpoint": pretrained}
    log = _classify(clients, folder, "classifier", **flags)
    assert "INIT_FROM_CKPT" in log
    found = numbers(folder / "classifier" / "eval_results.txt")
    assert found["global_step"] == 16
    assert 0.0 <= found["eval_accuracy"] <= 1.0
    rows = (folder / "classifier" / "test_results.tsv").read_text().splitlines()
    probabilities = np.array([[float(x) for x in row.split("\t")] for row in rows])
    assert probabilities.shape == (20, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-6)
    accuracy = np.mean(probabilities.argmax(1) == [label for *_, label in text.pairs(84)[64:]])
    np.testing.assert_allclose(found["eval_accuracy"], accuracy, atol=1e-6)
    record("bert-tensorflow 1.0.4", "run_classifier: train from init_checkpoint, evaluate, predict")


@pytest.mark.full
def test_classifier_goes_on(folder, pretrained, clients):
    """The same command with more epochs resumes from the checkpoint, not from `init_checkpoint`."""
    flags = {"do_train": True, "init_checkpoint": pretrained}
    _classify(clients, folder, "resumed", num_train_epochs=1, **flags)
    log = _classify(clients, folder, "resumed", num_train_epochs=2, **flags)
    assert "Restoring parameters from resumed/model.ckpt-8" in log
    assert tf.train.latest_checkpoint(str(folder / "resumed")).endswith("model.ckpt-16")
    record("bert-tensorflow 1.0.4", "run_classifier: resume")


@pytest.mark.full
def test_squad(folder, pretrained, clients):
    log = run(
        clients,
        "bert.run_squad",
        folder,
        vocab_file="vocab.txt",
        bert_config_file="config.json",
        output_dir="squad",
        train_file="squad.json",
        predict_file="squad.json",
        init_checkpoint=pretrained,
        do_train=True,
        do_predict=True,
        train_batch_size=4,
        predict_batch_size=4,
        num_train_epochs=5,
        learning_rate=3e-3,
        max_seq_length=64,
        doc_stride=32,
        max_query_length=16,
    )
    assert "Loss for final step" in log
    answers = json.loads((folder / "squad" / "predictions.json").read_text())
    asked = json.loads((folder / "squad.json").read_text())["data"]
    contexts = {p["qas"][0]["id"]: p["context"] for d in asked for p in d["paragraphs"]}
    assert answers.keys() == contexts.keys()
    assert all(answer in contexts[key] for key, answer in answers.items())
    assert any(answers.values())
    record("bert-tensorflow 1.0.4", "run_squad: train, predict")


@pytest.mark.full
def test_extract_features(folder, pretrained, clients):
    sentences = text.documents(1)[0][:5]
    (folder / "sentences.txt").write_text("\n".join(sentences) + "\n")
    run(
        clients,
        "bert.extract_features",
        folder,
        input_file="sentences.txt",
        output_file="features.jsonl",
        vocab_file="vocab.txt",
        bert_config_file="config.json",
        init_checkpoint=pretrained,
        max_seq_length=LENGTH,
        layers="-1,-2",
        batch_size=2,
    )
    found = [json.loads(line) for line in (folder / "features.jsonl").read_text().splitlines()]
    assert [example["linex_index"] for example in found] == [0, 1, 2, 3, 4]
    for example, sentence in zip(found, sentences, strict=True):
        tokens = [feature["token"] for feature in example["features"]]
        assert (tokens[0], tokens[-1]) == ("[CLS]", "[SEP]")
        assert "".join(tokens[1:-1]).replace("##", "").startswith(sentence.split()[0])
        layers = example["features"][0]["layers"]
        assert [layer["index"] for layer in layers] == [-1, -2]
        assert np.isfinite(layers[0]["values"]).all()
        assert len(layers[0]["values"]) == 32
    record("bert-tensorflow 1.0.4", "extract_features")


@pytest.mark.full
def test_like_the_original(folder, pretrained, clients, original):
    """The same script, flags and first values on TensorFlow 2.15: `compare` says so."""
    flags = {**PRETRAINING, "output_dir": "compared", "init_checkpoint": pretrained}
    flags |= {"learning_rate": 1e-3, "num_train_steps": 20}
    options = ["--original-python", original.python, "--behavior", "v1", "--steps", "10"]
    written = folder / "compared.html"
    printed = python(
        clients,
        folder,
        *("-m", "tpu_estimator_compat", "compare", *options, "--html", str(written)),
        *("-m", "bert.run_pretraining", *(f"--{name}={value}" for name, value in flags.items())),
    )
    assert re.search(r"^Compare: same( up to rounding)? over 10 steps$", printed, re.MULTILINE)
    assert (
        "The two" in written.read_text() or "never above the rounding limit" in written.read_text()
    )
    assert not (folder / "compared").exists()
    record("bert-tensorflow 1.0.4", "run_pretraining: losses and weights of TensorFlow 2.15")
