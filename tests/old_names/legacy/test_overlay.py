"""Namespaces: every name of `tf.contrib` is served or refused, and refusals say what to do."""

import pathlib

import pytest
from support.proofs.served import found

from tpu_estimator_compat.old_names.legacy import overlay, table

ROWS = table.load().rows


def test_a_refused_name_may_be_imported_and_asked_for():
    quantize = found("tf.contrib.quantize")
    thing = quantize.create_training_graph
    assert "not provided" in repr(thing)
    assert not isinstance(1, thing)
    deeper = found("tf.contrib.model_pruning").Pruning.attribute
    with pytest.raises(
        NotImplementedError, match=r"tf\.contrib\.model_pruning\.Pruning\.attribute"
    ):
        deeper()


def test_all_of_tf_contrib_is_served_or_refused():
    """The public names of TensorFlow 1.15; none ends in an error that says nothing."""
    names = pathlib.Path(__file__).with_name("contrib_names.txt").read_text().split()
    assert len(names) > 1400
    things = {name: found(name) for name in names}
    refused = [name for name, thing in things.items() if isinstance(thing, overlay.Refused)]
    assert len(names) - len(refused) > 600


def test_what_a_namespace_refuses_is_refused_inside_of_it():
    inside = "tf.contrib.rnn.python.ops.rnn_cell"
    cell = overlay.member(found(inside), inside, "NTMCell")
    with pytest.raises(NotImplementedError) as raised:
        cell(4)
    assert ROWS["tf.contrib.rnn.NTMCell"].advice in str(raised.value)
    with pytest.raises(ImportError):
        overlay.member(found(inside), inside, "NoSuchCell")
