import collections

import pytest

from . import bert

# A layer of BERT that is compiled for GPUs, and an encoder for TPUs, are in every run.
pytestmark = [pytest.mark.full, pytest.mark.minutes]

GIB = 2**30


@pytest.mark.parametrize(
    ("sizes", "parameters", "of_layer", "besides"),
    [
        pytest.param(
            *(bert.OF_ONE_SMALL_LAYER, bert.PARAMETERS_OF_ONE_SMALL_LAYER, 198_272, 0.1), id="small"
        ),
        pytest.param(
            bert.OF_ONE_LAYER,
            110_106_428 - 11 * 7_087_872,  # those of BERT-base, which has 12 layers
            7_087_872,
            0.05,
            id="base",
        ),
    ],
)
def test_bert(clients, tmp_path, sizes, parameters, of_layer, besides):
    """BERT with one of its layers. Without `use_tpu` it looks embeddings up.

    What is no product of matrices is a larger part of a smaller model.
    """
    found = bert.report(clients, tmp_path, "v5e:1x1", 1, use_tpu=False, sizes=sizes)
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
