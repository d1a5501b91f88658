"""Proofs of the parsing specs of canned models."""

import tensorflow.compat.v1 as tf

from support.proofs import proves
from support.proofs.canned.models import COLUMN


@proves("tf.estimator.classifier_parse_example_spec")
def classifier_parses(parse_example_spec):
    spec = parse_example_spec([COLUMN], "y", weight_column="w")
    assert {key: feature.dtype for key, feature in spec.items()} == {
        "x": tf.float32,
        "y": tf.int64,
        "w": tf.float32,
    }


@proves("tf.estimator.regressor_parse_example_spec")
def regressor_parses(parse_example_spec):
    spec = parse_example_spec([COLUMN], "y", label_dimension=3)
    assert (spec["y"].dtype, spec["y"].shape) == (tf.float32, (3,))
