"""Proofs of TPUEstimator, its parts and its tables."""

import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from support.proofs import below, proves
from tpu_estimator_compat import embedding

TPU = "tf.contrib.tpu"
DEEP = "tf.contrib.tpu.python.tpu"


def input_fn(params):
    dataset = tf2.data.Dataset.from_tensors(([1.0], [2.0])).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def trains(estimator_class, folder, hooks=()):
    config = tpu.RunConfig(
        model_dir=str(folder), tpu_config=tpu.TPUConfig(2), log_step_count_steps=2
    )
    estimator = estimator_class(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(input_fn, steps=4, hooks=[make(estimator) for make in hooks])
    assert estimator.get_variable_value("weight") > 1.0
    return estimator


@proves(*below(TPU, "TPUConfig"))
def configures(config):
    assert config(iterations_per_loop=7).iterations_per_loop == 7


@proves(*below(TPU, "RunConfig"))
def configures_runs(config):
    assert config(tpu_config=tpu.TPUConfig(3)).tpu_config.iterations_per_loop == 3


@proves(*below(TPU, "InputPipelineConfig"))
def has_modes(config):
    assert tpu.TPUConfig(per_host_input_for_training=config.PER_HOST_V2)


@proves(*below(TPU, "TPUEstimator"))
def has_the_estimator(estimator, tmp_path):
    trains(estimator, tmp_path)


@proves(*below(TPU, "TPUEstimatorSpec"))
def has_specs(spec):
    assert spec(tpu.ModeKeys.PREDICT, predictions={"x": tf.constant(1)}).mode == "infer"


@proves(*below(DEEP, "tpu_config tpu_estimator"), "tf.python.tpu.tpu_config")
@proves("tf.python.tpu.tpu_estimator", "tf.estimator.tpu")
@proves("tensorflow_estimator.python.estimator.tpu", "tf.python.estimator.tpu")
@proves(*below("tensorflow_estimator.python.estimator.tpu", "tpu_config tpu_estimator"))
@proves(*below("tf.python.estimator.tpu", "tpu_config tpu_estimator"))
def has_all_of_the_estimator(module):
    config = module.RunConfig(tpu_config=module.TPUConfig(iterations_per_loop=5))
    estimator = module.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=2)
    assert estimator.config.tpu_config.iterations_per_loop == 5
    assert module.TPUEstimatorSpec("infer", predictions={"x": tf.constant(1)}).mode == "infer"


@proves(f"{DEEP}.tpu_context", "tf.python.tpu.tpu_context")
@proves("tensorflow_estimator.python.estimator.tpu.tpu_context")
@proves("tf.python.estimator.tpu.tpu_context")
def has_contexts(tpu_context, tmp_path):
    seen = []

    def looking_input_fn(params):
        seen.append(params["context"])
        return input_fn(params)

    config = tpu.RunConfig(model_dir=str(tmp_path), master="")
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(looking_input_fn, steps=1)
    # Off TPU a context is given only where the original gave one.
    assert all(isinstance(context, tpu_context.TPUContext) for context in seen)
    assert seen


@proves(*below(TPU, "export_estimator_savedmodel"))
def exports(export, tmp_path):
    estimator = trains(tpu.TPUEstimator, tmp_path)

    def predicting(features, mode, params):
        weight = tf.get_variable("weight", [])
        return tpu.TPUEstimatorSpec(mode, predictions={"y": features["x"] * weight})

    predictor = tpu.TPUEstimator(
        predicting,
        config=tpu.RunConfig(model_dir=estimator.model_dir),
        use_tpu=False,
        train_batch_size=4,
        export_to_tpu=False,
    )
    receiver = tpu.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.TensorSpec([None], tf.float32)}
    )
    path = export(predictor, str(tmp_path / "exports"), receiver)
    assert tf.saved_model.contains_saved_model(path.decode())


@proves(f"{TPU}.AsyncCheckpointSaverHook", f"{DEEP}.async_checkpoint.AsyncCheckpointSaverHook")
@proves("tf.python.tpu.async_checkpoint.AsyncCheckpointSaverHook")
def saves(hook, tmp_path):
    other = tmp_path / "other"

    def make(estimator):
        del estimator
        return hook(str(other), save_steps=2)

    trains(tpu.TPUEstimator, other, [make])
    assert tf.train.latest_checkpoint(str(other)) == str(other / "model.ckpt-4")


@proves(f"{TPU}.TPUInMemoryEvalHook")
def evaluates_in_memory(hook, tmp_path):
    hooks = []

    def model_with_eval(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec if mode == "train" else tpu.TPUEstimatorSpec(mode, loss=spec.loss)

    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(2))
    estimator = tpu.TPUEstimator(
        model_with_eval, config=config, use_tpu=True, train_batch_size=4, eval_batch_size=4
    )
    hooks.append(hook(estimator, input_fn, steps=1, every_n_iter=2))
    estimator.train(input_fn, steps=4, hooks=hooks)
    assert list(tmp_path.glob("eval/*tfevents*"))


EMBEDDING_PLACES = [
    "tensorflow_estimator.python.estimator.tpu",
    "tf.python.estimator.tpu",
    "tf.python.tpu",
]


@proves(
    "tf.estimator.tpu.experimental.EmbeddingConfigSpec",
    *(f"{place}.tpu_estimator.EmbeddingConfigSpec" for place in EMBEDDING_PLACES),
)
def describes_tables(spec_class):
    ids = tf.feature_column.categorical_column_with_identity("ids", 4)
    column = tf.tpu.experimental.embedding_column(ids, 3)
    spec = spec_class([column], optimization_parameters=embedding.AdagradParameters(0.1))
    assert spec.feature_columns == [column]
    assert spec.partition_strategy == "div"


@proves("tf.estimator.tpu.experimental")
def has_the_spec_of_tables(module):
    describes_tables(module.EmbeddingConfigSpec)


@proves(
    *below(
        "tf.tpu.experimental",
        "AdagradParameters AdamParameters FtrlParameters StochasticGradientDescentParameters",
    ),
    *(
        f"{place}.tpu_estimator.{name}Parameters"
        for place in EMBEDDING_PLACES
        for name in ("Adagrad", "Adam", "StochasticGradientDescent")
    ),
)
def has_a_learning_rate(parameters):
    assert parameters(0.1, clip_weight_max=2.0).learning_rate == 0.1
    assert parameters(0.1, clip_weight_max=2.0).clip_weight_max == 2.0


@proves(*(f"{place}._tpu_estimator_embedding" for place in EMBEDDING_PLACES))
def has_spec_and_optimizers(module):
    describes_tables(module.EmbeddingConfigSpec)
    has_a_learning_rate(module.FtrlParameters)


@proves("tf.python.tpu.tpu_embedding", f"{DEEP}.tpu_embedding")
def has_tables_features_and_optimizers(module):
    table = module.TableConfig(8, 2, optimization_parameters=module.RMSPropParameters(1, 0, 0, 1))
    assert table.combiner == "mean"
    assert module.FeatureConfig("table").max_sequence_length == 0
