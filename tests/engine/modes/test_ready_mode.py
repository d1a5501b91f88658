import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu

WARNING = "trainable variables have the values of their initializers"


def warnings(caplog):
    return [message for message in caplog.messages if WARNING in message]


def test_modes_without_a_checkpoint_say_so_once(tmp_path, caplog):
    estimator = make_estimator(tmp_path / "new")
    list(estimator.predict(finite_input_fn(20)))
    [told] = warnings(caplog)
    assert f"{tmp_path / 'new'}: 2 of 2 {WARNING}, for mode infer (hidden, output)." in told
    estimator.evaluate(finite_input_fn(16))
    assert len(warnings(caplog)) == 2
    estimator.keras_model().evaluate(finite_input_fn(16)({"batch_size": 16}), verbose=0)
    assert len(warnings(caplog)) == 3


def test_trained_models_say_nothing(tmp_path, caplog):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    list(estimator.predict(finite_input_fn(20)))
    estimator.evaluate(finite_input_fn(16))
    next(make_estimator(tmp_path / "b", warm_start_from=str(tmp_path)).predict(train_input_fn))
    model = estimator.keras_model()
    model.predict(finite_input_fn(16)({"batch_size": 16}), verbose=0)
    assert not warnings(caplog)


def fine_tuned(path, names):
    """A model_fn whose variables `names` are those of the checkpoint at `path`."""

    def model_fn(features, labels, mode, params):
        predictions = {"logits": logits_of(features)}
        tf.train.init_from_checkpoint(path, {name: name for name in names})
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    return model_fn


@pytest.mark.parametrize(("names", "drawn"), [(["hidden"], "output"), (["hidden", "output"], "")])
def test_what_init_from_checkpoint_gives_counts_as_trained(tmp_path, caplog, names, drawn):
    make_estimator(tmp_path / "old").train(train_input_fn, steps=1)
    model_fn = fine_tuned(str(tmp_path / "old"), names)
    list(make_estimator(tmp_path / "new", model_fn).predict(finite_input_fn(20)))
    told = warnings(caplog)
    assert [f"1 of 2 {WARNING}, for mode infer ({drawn})." in line for line in told] == (
        [True] if drawn else []
    )


def test_an_init_fn_may_give_values_from_anywhere(tmp_path, caplog):
    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: None)
        return spec._replace(scaffold_fn=lambda: scaffold)

    list(make_estimator(tmp_path, model_fn, use_tpu=True).predict(finite_input_fn(20)))
    assert not warnings(caplog)


@pytest.mark.parametrize("field", ["ready_op", "ready_for_local_init_op"])
def test_an_operation_that_runs_says_ready(tmp_path, field):
    ran = []

    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        noted = tf.group(tf.py_func(lambda: ran.append(mode) or np.int32(0), [], tf.int32))
        return spec._replace(scaffold_fn=lambda: tf.train.Scaffold(**{field: noted}))

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True)
    estimator.train(train_input_fn, steps=1)
    estimator.evaluate(train_input_fn, steps=1)
    assert len(list(estimator.predict(finite_input_fn(4)))) == 4
    assert set(ran) == {"train", "eval", "infer"}


@pytest.mark.parametrize("parts", [0, 1])
def test_a_warm_start_of_another_shape_is_named_for_a_sole_partition_too(tmp_path, parts):
    def of(rows):
        def model_fn(features, labels, mode, params):
            partitioner = tf.fixed_size_partitioner(1) if parts else None
            with tf.variable_scope("s", partitioner=partitioner):
                v = tf.get_variable("v", [rows, 2])
            loss = tf.reduce_sum(tf.convert_to_tensor(v))
            step = tf.assign_add(tf.train.get_global_step(), 1)
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step)

        return model_fn

    make_estimator(tmp_path / "old", of(4)).train(train_input_fn, steps=1)
    estimator = make_estimator(tmp_path / "new", of(3), warm_start_from=str(tmp_path / "old"))
    with pytest.raises(ValueError, match=r"Shape of variable s/v\S* \(\(3, 2\)\) doesn't match"):
        estimator.train(train_input_fn, steps=1)
