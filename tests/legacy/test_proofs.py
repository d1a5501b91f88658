"""The table against what it claims: every served name is called, every refused one refuses."""

import inspect
import pathlib

import pytest

from tpu_estimator_compat.legacy import namespaces, overlay, table
from tpu_estimator_compat.legacy.table import Status

from .proofs import (  # noqa: F401
    PROOFS,
    canned,
    cells,
    data,
    decoders,
    estimators,
    heads,
    internals,
    keras_python,
    layers,
    learn,
    others,
    tensorflow_python,
    tpu,
    training,
)

ROWS = table.load().rows
SERVED = sorted(name for name, row in ROWS.items() if row.status is not Status.REFUSED)
REFUSED = sorted(name for name, row in ROWS.items() if row.status is Status.REFUSED)


def found(name):
    """What the namespaces give for a name of the table."""
    root, _, path = name.partition(".")
    top = namespaces.v1() if root == "tf" else namespaces.tensorflow_estimator()
    parent, _, last = path.rpartition(".")
    return overlay.member(overlay.module(top, parent), name, last) if path else top


def test_every_served_row_has_a_proof_and_every_proof_a_row():
    assert set(PROOFS) == set(SERVED)


@pytest.mark.parametrize("name", SERVED)
def test_served(name, tmp_path):
    for proof in PROOFS[name]:
        wants_folder = "tmp_path" in inspect.signature(proof).parameters
        proof(found(name), *([tmp_path] if wants_folder else []))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    thing = found(name)
    if not isinstance(thing, overlay.Refused):
        # A module of which parts are served: everything else in it is refused.
        thing = overlay.member(thing, name, "something_else")
    with pytest.raises(NotImplementedError) as raised:
        thing(1, key=2)
    assert name in str(raised.value)
    assert ROWS[name].advice in str(raised.value)
    with pytest.raises(NotImplementedError):

        class _Derived(thing):
            pass


def test_the_table_is_loaded_in_order_and_says_what_to_do():
    for row in ROWS.values():
        assert row.since in ("2.0", "2.3", "2.16"), row
        if row.advice:
            assert row.advice[0].isupper() or row.advice.startswith("`tf."), row
            assert row.advice.endswith("."), row
        if row.move_to:
            assert row.move_to.startswith("tf"), row


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
