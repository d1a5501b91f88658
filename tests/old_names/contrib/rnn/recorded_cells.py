"""Cells of `tf.contrib.rnn` against what TensorFlow 1.15.5 says of them, on Python 3.7.

`cells_probe.py` recorded that in `cells_of_1_15.json`: variables, and what cells compute.
"""

import json
import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from . import cells_probe

ORIGINAL = json.loads(pathlib.Path(__file__).with_name("cells_of_1_15.json").read_text())
MODULES = {
    "cell_layers": ["layer norm basic"],
    "cell_wrappers": [
        *("attention", "attention sizes", "embedding", "highway", "highway gates"),
        *("input projection", "output projection", "stack"),
    ],
    "conv_cells": ["conv", "conv skip", "conv1", "conv2", "conv3"],
    "fused_rnn": ["gru block", "gru block 2"],
    "gated_cells": ["indrnn", "indy lstm", "nas", "nas all", "sru", "ugrnn"],
    "lstm_variants": [
        *("CoupledInputForgetGateLSTMCell everything", "CoupledInputForgetGateLSTMCell plain"),
        *("coupled one tensor", "groups", "groups projected", "phased", "phased peepholes"),
    ],
}
"""Cases by the module of the cell; the test file of each compares them."""

NUMBERS = ("outputs", "sums", "gradients")


def compared(module):
    """A test of a module's cells: variables and numbers are those of the original."""
    cases = [case for case in sorted(ORIGINAL) if case.rpartition(", ")[0] in MODULES[module]]

    @pytest.mark.parametrize("case", cases)
    def test(case):
        name, _, mode = case.rpartition(", ")
        make, inputs = cells_probe.cases()[name]
        found = cells_probe.run(tf, rnn, make, inputs, dynamic=mode == "loop")
        for key, expected in ORIGINAL[case].items():
            if key in NUMBERS:
                np.testing.assert_allclose(found[key], expected, rtol=1e-5, atol=1e-6, err_msg=key)
            else:
                assert json.loads(json.dumps(found[key])) == expected, key

    return test
