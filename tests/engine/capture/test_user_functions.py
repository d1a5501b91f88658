import pytest
import tensorflow as tf2
from support.legacy_models import make_estimator, make_model_fn, train_input_fn
from tensorflow.python.autograph.impl import api

import tpu_estimator_compat as tpu

Modes = tpu.InputPipelineConfig


@pytest.mark.parametrize(
    ("mode", "calls", "input_size", "model_size"),
    [
        (Modes.PER_SHARD_V1, 4, 4, 4),
        (Modes.PER_HOST_V1, 1, 16, 4),
        (Modes.PER_HOST_V2, 1, 4, 4),
        (Modes.BROADCAST, 1, 16, 16),
    ],
)
def test_batch_sizes_under_tpu_semantics(tmp_path, strategy, mode, calls, input_size, model_size):
    inputs, models = [], []

    def input_fn(params):
        context = params["context"]
        inputs.append((params["batch_size"], context.current_input_fn_deployment()[1:]))
        assert context.num_replicas == 4
        assert context.num_hosts == 1
        assert context.current_host == 0
        assert context.num_of_replicas_per_host == 4
        with pytest.raises(RuntimeError, match="must not be called from input_fn"):
            _ = context.device_assignment
        return train_input_fn(params)

    def model_fn(features, labels, mode, params):
        context = params["context"]
        models.append((params["batch_size"], features.shape[0]))
        with pytest.raises(RuntimeError, match="must not be called from model_fn"):
            context.current_input_fn_deployment()
        with pytest.raises(RuntimeError, match="must not be called from model_fn"):
            _ = context.current_host
        return make_model_fn()(features, labels, mode, params)

    estimator = make_estimator(
        tmp_path,
        model_fn,
        use_tpu=True,
        train_distribute=strategy(4),
        tpu_config=tpu.TPUConfig(per_host_input_for_training=mode),
    )
    estimator.train(input_fn, steps=2)
    fed = 1 if calls == 4 else 4
    assert inputs == [(input_size, (i, calls, fed)) for i in range(calls)]
    assert models == [(model_size, model_size)]


def test_all_logical_cpus_are_replicas_and_a_log_line_says_so(tmp_path, caplog):
    estimator = make_estimator(tmp_path, use_tpu=True)
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.train(train_input_fn, steps=1)
    assert "No TPU: running train with TPU semantics on 4 local replica(s)" in caplog.text


@pytest.fixture
def converted(monkeypatch):
    """The names of modules whose functions AutoGraph rewrites."""
    modules = []
    convert = api._convert_actual

    def noting(entity, program_ctx):
        modules.append(entity.__module__)
        return convert(entity, program_ctx)

    monkeypatch.setattr(api, "_convert_actual", noting)
    return modules


def model_fn(features, labels, mode, params):
    weight = tf2.compat.v1.get_variable("weight", initializer=0.0)
    predictions = {"y": features * weight}
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf2.reduce_mean((features * weight - labels) ** 2)
    step = tf2.compat.v1.train.get_global_step()
    train_op = tf2.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def tensors(params):
    return tf2.random.uniform([2]), tf2.ones([2])


def user_function(x, y):
    if tf2.reduce_sum(x) > 0:
        x = x + 1.0
    return x, y


def dataset(params):
    data = tf2.data.Dataset.from_tensor_slices(([1.0] * 4, [2.0] * 4)).map(user_function)
    return data.repeat(2).batch(2, drop_remainder=True)


@pytest.mark.parametrize("use_tpu", [False, True])
@pytest.mark.parametrize("input_fn", [tensors, dataset])
def test_nothing_of_ours_is_converted(tmp_path, strategy, converted, input_fn, use_tpu):
    estimator = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=str(tmp_path), train_distribute=strategy(1)),
        params={},
        use_tpu=use_tpu,
        train_batch_size=2,
        eval_batch_size=2,
        predict_batch_size=2,
    )
    estimator.train(input_fn, steps=2)
    estimator.evaluate(input_fn, steps=2)
    list(estimator.predict(dataset))
    assert __name__ in converted  # the user's own is
    assert not [name for name in converted if name.startswith("tpu_estimator_compat")]
