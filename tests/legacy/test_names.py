"""The table against what it claims: every served name is called, every refused one refuses.

Names that `tpu_estimator_compat.contrib` and `canned` serve are proved in the test files of their
modules.
"""

import pathlib

import pytest
from support.proofs import proved_rows
from support.proofs.names import (
    contrib_others,
    contrib_tpu,
    estimator,
    internals,
    keras_python,
    layers,
    tensorflow_python,
    tpu_estimator,
)
from support.proofs.proving import each_proof_of, found

from tpu_estimator_compat.legacy import overlay, table
from tpu_estimator_compat.legacy.table import Status

ROWS = table.load().rows
SERVED = {name for name, row in ROWS.items() if row.status is not Status.REFUSED}

test_served_names = each_proof_of(
    contrib_others,
    contrib_tpu,
    estimator,
    internals,
    keras_python,
    layers,
    tensorflow_python,
    tpu_estimator,
)


def test_every_served_row_has_a_proof_and_every_proof_a_row():
    assert proved_rows() == SERVED


def test_every_module_of_proofs_is_tested():
    """By a test file of its name, or by this one."""
    tests = pathlib.Path(__file__).parents[1]
    proofs = tests / "support/proofs"
    for path in proofs.rglob("*.py"):
        name = path.relative_to(proofs).with_suffix("")
        if "@proves" not in path.read_text() or name.parts[0] == "names":
            continue
        places = [name.with_name(f"test_{name.name}.py"), name / f"test_{name.name}.py"]
        texts = [(tests / p).read_text() for p in places if (tests / p).exists()]
        assert any("test_served_names = each_proof_of(" in text for text in texts), name


def test_refused_names_say_what_to_do():
    for name in sorted(set(ROWS) - SERVED):
        try:
            refuses(name)
        except Exception as error:
            error.add_note(name)
            raise


def refuses(name):
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
