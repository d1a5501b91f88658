"""Models that are large: BERT as its authors published it, and batches near the limit."""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys

import pytest
from support.client_packages import environment

pytestmark = [pytest.mark.slow, pytest.mark.minutes]

GIB = 2**30
BERT_BASE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
# Layers are alike, and take minutes to compile.
BERT_OF_ONE_LAYER = {**BERT_BASE, "num_hidden_layers": 1}
BERT_OF_ONE_SMALL_LAYER = {
    **BERT_BASE,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
}


def bert(
    clients: pathlib.Path,
    folder: pathlib.Path,
    topology: str,
    replicas: int,
    use_tpu: bool,
    sizes: dict,
) -> dict:
    """The report on BERT's pretraining, 32 examples of 128 tokens per replica."""
    (folder / "config.json").write_text(json.dumps(sizes))
    (folder / "examples.tfrecord").touch()  # no data is read
    command = ["-m", "tpu_estimator_compat", "preflight", "--json", "--topology", topology]
    flags = {
        "input_file": "examples.tfrecord",
        "do_train": True,
        "bert_config_file": "config.json",
        "train_batch_size": 32 * replicas,
        "num_tpu_cores": replicas,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "output_dir": "out",
        "use_tpu": use_tpu,
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    done = subprocess.run(
        [sys.executable, *command, "-m", "bert.run_pretraining", *given],
        cwd=folder,
        env={**environment(clients), "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    [report] = json.loads(done.stdout)["reports"]
    return report


@pytest.mark.parametrize(
    ("sizes", "parameters", "of_layer", "besides"),
    [
        pytest.param(BERT_OF_ONE_SMALL_LAYER, 4_433_468 - 198_272, 198_272, 0.1, id="small"),
        pytest.param(
            BERT_OF_ONE_LAYER,
            110_106_428 - 11 * 7_087_872,  # those of BERT-base, which has 12 layers
            7_087_872,
            0.05,
            id="base",
            marks=pytest.mark.full,
        ),
    ],
)
def test_bert(clients, tmp_path, sizes, parameters, of_layer, besides):
    """BERT with one of its layers. Without `use_tpu` it looks embeddings up.

    What is no product of matrices is a larger part of a smaller model.
    """
    found = bert(clients, tmp_path, "v5e:1x1", 1, use_tpu=False, sizes=sizes)
    memory = found["memory"]
    count, width = sizes["num_hidden_layers"], sizes["hidden_size"]
    assert found["parameters"] == parameters
    assert memory["arguments"] == pytest.approx(3 * 4 * found["parameters"], rel=0.1)  # slots
    # Each product has two more for its gradients: https://arxiv.org/abs/2001.08361, 2.1.
    tokens, predicted = 32 * 128, 32 * 20
    layer = 6 * tokens * 12 * width**2 + 12 * tokens * 128 * width
    head = 6 * predicted * width * (sizes["vocab_size"] + width)
    assert found["flops"] == pytest.approx(count * layer + head, rel=besides)
    variables = collections.Counter()
    for part in found["layers"]:
        variables["/".join(part["name"].split("/")[:3])] += part["variables"]
    layers = [size for name, size in variables.items() if name.startswith("bert/encoder/layer_")]
    assert layers == [4 * of_layer] * count


@pytest.mark.full
def test_bert_on_four_replicas(clients, tmp_path):
    """Its optimizer exchanges gradients, and its embeddings are products with one-hot vectors.

    A small BERT: what replicas exchange is the same for each layer.
    """
    sizes = BERT_OF_ONE_SMALL_LAYER
    found = bert(clients, tmp_path, "v5e:2x2", 4, use_tpu=True, sizes=sizes)
    assert found["parameters"] == 4_433_468 - 198_272  # BERT-tiny's without a layer
    size = 4 * found["parameters"]
    assert found["memory"]["arguments"] == pytest.approx(3 * size, rel=0.1)  # Adam's slots
    one_hot_product = 2 * (32 * 128) * sizes["vocab_size"] * sizes["hidden_size"]
    assert found["flops"] > 2 * one_hot_product  # with its gradient
    assert found["collectives"]["all_reduces"] > 25
    assert found["collectives"]["all_reduce_bytes"] >= size
    assert 0 < sum(found["collectives"]["compiled"].values()) < 20
