import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from support.proofs import answers, below, proves
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


@proves(*below(TPU, "TPUEstimator"))
def has_the_estimator(estimator, tmp_path):
    trains(estimator, tmp_path)


@proves(f"{DEEP}.tpu_context")
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


@proves(f"{TPU}.AsyncCheckpointSaverHook")
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


@proves("tf.estimator.tpu.experimental.EmbeddingConfigSpec")
def describes_tables(spec_class):
    ids = tf.feature_column.categorical_column_with_identity("ids", 4)
    column = tf.tpu.experimental.embedding_column(ids, 3)
    spec = spec_class([column], optimization_parameters=embedding.AdagradParameters(0.1))
    assert spec.feature_columns == [column]
    assert spec.partition_strategy == "div"


def tables_of(module):
    table = module.TableConfig(8, 2, optimization_parameters=module.RMSPropParameters(1, 0, 0, 1))
    return table.combiner, module.FeatureConfig("table").max_sequence_length


def limited(parameters):
    made = parameters(0.1, clip_weight_max=2.0)
    return made.learning_rate, made.clip_weight_max


TABLES = "tf.tpu.experimental"

answers(
    {
        f"{TPU}.TPUConfig": (lambda config: config(7).iterations_per_loop, 7),
        f"{TPU}.RunConfig": (
            lambda config: config(tpu_config=tpu.TPUConfig(3)).tpu_config.iterations_per_loop,
            3,
        ),
        f"{TPU}.InputPipelineConfig": (lambda config: int(config.PER_HOST_V2), 3),
        f"{TPU}.TPUEstimatorSpec": (
            lambda spec: spec("infer", predictions={"x": tf.constant(1)}).mode,
            "infer",
        ),
        "tf.estimator.tpu.experimental": (
            lambda module: module.EmbeddingConfigSpec is embedding.EmbeddingConfigSpec,
            True,
        ),
        f"{DEEP}.tpu_embedding": (tables_of, ("mean", 0)),
        f"{TABLES}.AdagradParameters": (limited, (0.1, 2.0)),
        f"{TABLES}.AdamParameters": (limited, (0.1, 2.0)),
        f"{TABLES}.FtrlParameters": (limited, (0.1, 2.0)),
        f"{TABLES}.StochasticGradientDescentParameters": (limited, (0.1, 2.0)),
    }
)
