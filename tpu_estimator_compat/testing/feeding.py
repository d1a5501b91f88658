"""`testing.batches`: what an input_fn feeds to each replica and host."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config import TPUConfig, TPURunConfig
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.inputs.padding import Padded
from tpu_estimator_compat.engine.modes import preparation
from tpu_estimator_compat.engine.modes.rules import Rules
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.spec.validation import check_is_mode
from tpu_estimator_compat.testing.devices import check_count
from tpu_estimator_compat.testing.subject import check_hyperparameters

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Batch:
    """The input of one replica in one step.

    Attributes:
      step, replica, host: 0-based indices; the host is the machine that feeds the replica.
      features, labels: structures of NumPy arrays, examples along axis 0; no labels where None.
      padding: bool, of shape [batch]: the rows that fill up the last batch of predictions; else
        None.
    """

    step: int
    replica: int
    host: int
    features: Any
    labels: Any
    padding: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class _Replicas(Topology):
    """Replicas that need no devices, since they are fed and do not compute."""

    replicas: int = 1

    @property
    def num_replicas(self) -> int:
        return self.replicas


def batches(
    input_fn: Callable[..., Any],
    params: Any = None,
    mode: str = ModeKeys.TRAIN,
    replicas: int = 1,
    count: int = 3,
    *,
    batch_size: int,
    hosts: int = 1,
    tpu_config: TPUConfig | None = None,
    batch_axis: Sequence[int] | None = None,
    seed: int | None = 1,
) -> list[list[Batch]]:
    """Calls an input_fn as on a TPU, which need not be there, and returns what replicas are fed.

    Example:
      steps = testing.batches(input_fn, {"data_dir": "data"}, replicas=4, batch_size=32)
      assert [batch.features.shape[0] for batch in steps[0]] == [8, 8, 8, 8]

    Args:
      input_fn, params, batch_axis: as for `TPUEstimator`; `mode` is a `ModeKeys` value.
      replicas, count: the numbers of replicas of all hosts, and of steps to show.
      batch_size: of all replicas; that of `params` in input_fn follows from it.
      hosts: machines that call input_fn.
      tpu_config: its `per_host_input_for_training` and `eval_training_input_configuration` say how
        input_fn is called; None for the defaults.
      seed: of TensorFlow's random operations.

    Returns:
      For each step a list with the `Batch` of each replica. Fewer than `count` steps where the data
      ends.

    Raises:
      ValueError: batch or replicas cannot be divided evenly, input_fn takes no params, or `params`
        has a reserved key.
      NotImplementedError: queue runners make the elements.
    """
    counts = {"replicas": replicas, "count": count, "hosts": hosts, "batch_size": batch_size}
    for name, value in counts.items():
        check_count(value, name)
    check_is_mode(mode)
    check_hyperparameters(params)
    if replicas % hosts:
        raise ValueError(f"{replicas} replicas cannot be spread evenly over {hosts} hosts.")
    config = TPURunConfig(tpu_config=tpu_config or TPUConfig(), tf_random_seed=seed)
    rules = _rules({} if params is None else params, config, batch_size, batch_axis)
    topology = _Replicas(tf.distribute.get_strategy(), True, hosts, replicas=replicas)
    input_mode = rules.input_mode(mode, topology)
    input_mode.check()
    return _dealt(_deployed(rules, input_fn, input_mode, topology), replicas, count)


def _rules(
    params: Any, config: TPURunConfig, batch_size: int, batch_axis: Sequence[int] | None
) -> Rules:
    sizes = dict.fromkeys((ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT), batch_size)
    return Rules(
        lambda features, params: None,
        params,
        config,
        config.tpu_config,
        True,
        True,
        sizes,
        batch_axis,
    )


def _deployed(
    rules: Rules, input_fn: Callable[..., Any], input_mode: Any, topology: Topology
) -> DeployedInput:
    store = VariableStore(topology.strategy)
    deployed = preparation.deploy_input(rules, input_fn, input_mode, store)
    _initialize(deployed.called[0].graph, store)
    return deployed


def _initialize(graph: tf.Graph, store: VariableStore) -> None:
    if graph.get_collection(v1.GraphKeys.QUEUE_RUNNERS):
        raise NotImplementedError(
            "input_fn makes elements with queue runners, which need a session. Return a "
            "tf.data.Dataset, or look at what model_fn gets in testing.run."
        )
    with graph.as_default():
        made = [v1.global_variables_initializer(), v1.local_variables_initializer()]
        GraphSession(graph, store).run([*made, v1.tables_initializer()])


def _dealt(deployed: DeployedInput, replicas: int, count: int) -> list[list[Batch]]:
    with eager.eager_mode(), tf.device("/cpu:0"):
        iterators = [iter(dataset) for dataset in deployed.deal()]
        of_host = replicas // len(iterators)
        steps: list[list[Batch]] = []
        for step in range(count):
            found = []
            for replica in range(replicas):
                element = next(iterators[replica // of_host], None)
                if element is None:
                    return steps
                found.append(_batch(step, replica, replica // of_host, element))
            steps.append(found)
        return steps


def _batch(step: int, replica: int, host: int, element: Any) -> Batch:
    padding = None
    if isinstance(element, Padded):
        padding = element.is_padding.numpy().astype(bool)
        given = not (isinstance(element.labels, tuple) and not element.labels)
        element = (element.features, element.labels) if given else element.features
    whole = tf.nest.map_structure(_numpy, element)
    features, labels = whole if isinstance(whole, tuple) and len(whole) == 2 else (whole, None)
    return Batch(step, replica, host, features, labels, padding)


def _numpy(tensor: Any) -> Any:
    return tensor.numpy() if isinstance(tensor, tf.Tensor) else tensor
