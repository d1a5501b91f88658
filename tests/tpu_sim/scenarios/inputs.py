"""Scenarios: input."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from ..model import FEATURES, Modes, Run, dataset, eval_input, predict_input, scenario, train_input


@scenario
def per_host_v1(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    )


@scenario
def per_host_v2(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V2})
    )


@scenario
def per_shard(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_SHARD_V1})
    )


@scenario
def training_per_host_v1(run: Run) -> None:
    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    estimator.train(train_input, max_steps=10)


@scenario
def only_training(run: Run) -> None:
    hosts = []

    def input_fn(params):
        hosts.append(params["context"].current_host)
        return train_input(params)

    estimator = run.estimator()
    estimator.train(input_fn, max_steps=10)
    if run.cores_per_replica:
        assert hosts == [0, 2]  # those of the replicas' first cores
        broadcast = {"per_host_input_for_training": Modes.BROADCAST}
        with pytest.raises(ValueError, match="Except the PER_HOST_V2 mode, the num of cores"):
            run.estimator(tpu_config=broadcast).train(input_fn, max_steps=20)


@scenario
def training_per_shard(run: Run) -> None:
    def input_fn(params):  # every core reads all
        return dataset().repeat().batch(params["batch_size"], drop_remainder=True)

    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_SHARD_V1})
    estimator.train(input_fn, max_steps=10)


@scenario
def broadcast(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.BROADCAST})
    )


@scenario
def sliced_evaluation(run: Run) -> None:
    estimator = run.estimator(
        tpu_config={
            "per_host_input_for_training": Modes.PER_HOST_V2,
            "eval_training_input_configuration": Modes.SLICED,
        }
    )
    estimator.train(train_input, max_steps=10)
    run.see("evaluation", estimator.evaluate(eval_input, steps=4))


@scenario
def tensors_from_input_fn(run: Run) -> None:
    def input_fn(params):
        (features, labels) = tf.data.make_one_shot_iterator(train_input(params)).get_next()
        return features, labels

    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    estimator.train(input_fn, max_steps=10)


@scenario
def several_predictions(run: Run) -> None:
    estimator = run.estimator()
    estimator.train(train_input, max_steps=5)
    whole = list(estimator.predict(predict_input, yield_single_examples=False))
    run.see("predictions", np.concatenate([p["y"] for p in whole]))
    first = next(estimator.predict(predict_input))
    run.see("first", first)


@scenario
def refused_on_a_pod(run: Run) -> None:
    """What would be wrong without a word on several hosts."""
    if run.hosts == 1:
        return

    def generated(params):
        signature = (
            {"x": tf2.TensorSpec([FEATURES]), "id": tf2.TensorSpec([], tf.int64)},
            tf2.TensorSpec([1]),
        )
        examples = tf2.data.Dataset.from_generator(
            lambda: iter(dataset().as_numpy_iterator()), output_signature=signature
        )
        return examples.repeat().batch(params["batch_size"], drop_remainder=True)

    with pytest.raises(ValueError, match="input_fn's dataset runs Python"):
        run.estimator().train(generated, max_steps=5)
    with pytest.raises(NotImplementedError, match=r"save_input_state=True.*2 hosts"):
        run.estimator(run_config={"save_input_state": True}).train(train_input, max_steps=5)


@scenario
def strings_are_refused(run: Run) -> None:
    """Cores have none, nor have JAX's devices; logical CPUs take them."""

    def input_fn(params):
        named = dataset().map(lambda features, y: ({**features, "name": tf.as_string(y[0])}, y))
        return named.repeat().batch(params["batch_size"], drop_remainder=True)

    if run.on_tpu or run.on_jax:
        with pytest.raises(ValueError, match=r"gives strings.*: features\['name'\]"):
            run.estimator().train(input_fn, max_steps=5)
    else:
        run.estimator().train(input_fn, max_steps=5)


@scenario
def split_input(run: Run) -> None:
    """A replica's cores split its input; the simulation computes whole tensors."""
    dims = {"input_partition_dims": [{"x": [2, 1], "id": None}, None]}
    run.train_evaluate_predict(run.estimator(tpu_config=dims if run.cores_per_replica else None))
