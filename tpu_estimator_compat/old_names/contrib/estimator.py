"""`tf.contrib.estimator`: names that `tf.estimator` lacks.

`replicate_model_fn` calls a model_fn once per device, in one graph. Each call is a tower: it gets a
slice of the batch, and shares the variables of the first tower. A `TowerOptimizer` collects the
gradients of the towers; in the last one, it applies their sum.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture.user_functions import declared_arguments
from tpu_estimator_compat.estimator import EstimatorSpec, ModeKeys, export

_STATE = "tpu_estimator_compat/towers"  # a graph collection
Gradients = Sequence[tuple[Any, Any]]


@dataclasses.dataclass
class _Towers:
    """The towers of a graph, while they are built.

    Attributes:
      now: index of the tower under construction.
      first_scopes: variable scope and name scope of the first tower.
      gradients: per tower, the gradients of each optimizer call, in order.
      optimized: whether any `TowerOptimizer` was used.
    """

    count: int = 1
    reduction: str = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
    now: int = 0
    first_scopes: tuple[Any, Any] = (None, None)
    gradients: list[list[Gradients]] = dataclasses.field(default_factory=list)
    optimized: bool = False

    def share(self, loss: Any) -> Any:
        if loss is None or self.count == 1 or self.reduction == tf.losses.Reduction.SUM:
            return loss
        return tf.div(loss, 1.0 * self.count, name="averaged_loss")

    @contextlib.contextmanager
    def tower(self, number: int, device: str) -> Iterator[None]:
        name = f"tower_{number}" if number else ""
        with (
            tf.variable_scope("", reuse=number > 0) as variables,
            tf.name_scope(name) as names,
            tf.device(device),
        ):
            self.now = number
            self.gradients.append([])
            if not number:
                self.first_scopes = (variables, names)
            yield


def _towers() -> _Towers:
    state = tf.get_collection(_STATE)
    return state[0] if state else _Towers()


class TowerOptimizer(tf.train.Optimizer):
    """Applies the gradients of all towers at once, in the last tower.

    The argument is an optimizer, or a function that makes one. With one tower, that optimizer
    applies the gradients as usual.
    """

    def __init__(self, optimizer_or_optimizer_fn: Any):
        self._made = optimizer_or_optimizer_fn

    @property
    def _optimizer(self) -> tf.train.Optimizer:
        if not isinstance(self._made, tf.train.Optimizer):
            self._made = self._made()
        _towers().optimized = True
        return self._made

    get_slot = property(operator.attrgetter("_optimizer.get_slot"))
    get_slot_names = property(operator.attrgetter("_optimizer.get_slot_names"))
    get_name = property(operator.attrgetter("_optimizer.get_name"))
    variables = property(operator.attrgetter("_optimizer.variables"))

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        return self._optimizer.compute_gradients(_towers().share(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, **kwargs: Any) -> Any:
        towers, optimizer = _towers(), self._optimizer
        if towers.count == 1:
            return optimizer.apply_gradients(grads_and_vars, global_step, **kwargs)
        towers.gradients[-1].append(list(grads_and_vars))
        if towers.now < towers.count - 1:
            gradients = [grad for grad, _ in towers.gradients[-1][-1] if grad is not None]
            with tf.control_dependencies([getattr(g, "values", g) for g in gradients]):
                return tf.no_op(name="train_op_placeholder")
        call = len(towers.gradients[-1]) - 1
        variables, names = towers.first_scopes
        with tf.variable_scope(variables), tf.name_scope(names):
            summed = _summed([tower[call] for tower in towers.gradients if len(tower) > call])
            return optimizer.apply_gradients(summed, global_step=global_step, **kwargs)


def _summed(towers: Sequence[Gradients]) -> list[tuple[Any, Any]]:
    gradients: dict[Any, tuple[Any, list[Any]]] = {}
    for grad, variable in (pair for tower in towers for pair in tower):
        if grad is not None:
            gradients.setdefault(variable.ref(), (variable, []))[1].append(grad)
    with tf.name_scope("gradient_aggregating"):
        return [(_sum(grads), variable) for variable, grads in gradients.values()]


def _sum(values: list[Any], name: str | None = None) -> Any:
    if not isinstance(values[0], tf.IndexedSlices):
        return tf.add_n(values, name=name)
    return tf.IndexedSlices(
        tf.concat([value.values for value in values], 0),
        tf.concat([value.indices for value in values], 0),
        values[0].dense_shape,
    )


def replicate_model_fn(
    model_fn: Callable[..., EstimatorSpec],
    loss_reduction: str = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Sequence[str] | None = None,
) -> Callable[..., EstimatorSpec]:
    """A model_fn that splits each step over devices: all GPUs of this machine, or its CPU.

    With several devices, its optimizers must be `TowerOptimizer`s. `loss_reduction` selects the sum
    or the mean of the towers' losses; NONE is refused.
    """
    if loss_reduction == tf.losses.Reduction.NONE:
        raise ValueError(
            "Tower losses need to be reduced in some way, yet "
            f"{loss_reduction} reduction is specified."
        )
    if not devices:
        gpus = tf.config.list_logical_devices("GPU")
        devices = [device.name for device in gpus] or ["/device:CPU:0"]
    tf.logging.info("Replicating the `model_fn` across %s.", devices)
    build = functools.partial(_build, model_fn, loss_reduction, tuple(devices))

    def replicated_model_fn(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> EstimatorSpec:
        specs = build(features, labels, mode, params, config)
        return specs[0] if len(specs) == 1 else _combined(specs, mode)

    return replicated_model_fn


def _build(
    model_fn: Callable[..., EstimatorSpec],
    reduction: str,
    devices: Sequence[str],
    features: Any,
    labels: Any,
    mode: str,
    params: Any,
    config: Any,
) -> list[EstimatorSpec]:
    towers = _Towers(len(devices), reduction)
    tf.get_collection_ref(_STATE)[:] = [towers]
    shards = [(features, labels)]
    if towers.count > 1:
        with tf.name_scope("split_inputs"):
            split = _split(features, towers.count), _split(labels, towers.count)
        shards = list(zip(*split, strict=True))
    specs = []
    for number, (device, (features, labels)) in enumerate(zip(devices, shards, strict=True)):
        offered = {"params": copy.deepcopy(params), "config": copy.deepcopy(config)}
        with towers.tower(number, device):
            spec = model_fn(
                features=features,
                labels=labels,
                mode=mode,
                **declared_arguments(model_fn, offered),
            )
            if spec.train_op is not None and towers.count > 1 and not towers.optimized:
                raise ValueError(
                    "Please wrap optimizers with TowerOptimizer in order to use "
                    "replicate_model_fn with multiple `devices`."
                )
            specs.append(spec._replace(loss=towers.share(spec.loss)))
    if len({len(calls) for calls in towers.gradients}) != 1:
        raise ValueError(
            "Each invocation of model_fn was supposed to make the same optimizer calls."
        )
    tf.get_collection_ref(_STATE).clear()
    return specs


def _split(batch: Any, count: int) -> list[Any]:
    if batch is None:
        return [None] * count
    if isinstance(batch, dict):
        slices = {name: _split(tensor, count) for name, tensor in batch.items()}
        return [{name: each[i] for name, each in slices.items()} for i in range(count)]
    if isinstance(batch, tf.SparseTensor):
        return tf.sparse_split(sp_input=batch, num_split=count, axis=0)
    batch = tf.convert_to_tensor(batch)
    size = batch.shape[0]
    if size is None or size % count:
        raise ValueError(
            f"Batch size {size} needs to be divisible by the number of GPUs, which is {count}."
        )
    return tf.split(batch, count)


def _combined(specs: list[EstimatorSpec], mode: str) -> EstimatorSpec:
    if mode == ModeKeys.PREDICT:
        return specs[0]._replace(
            predictions=_joined([spec.predictions for spec in specs]),
            export_outputs={
                name: _joined_output([spec.export_outputs[name] for spec in specs])
                for name in specs[0].export_outputs
            },
        )
    loss = _sum([spec.loss for spec in specs], "loss")
    if mode == ModeKeys.TRAIN:
        return specs[-1]._replace(loss=loss)
    updates = [update for spec in specs for _, update in spec.eval_metric_ops.values()]
    with tf.control_dependencies(updates):
        update = _metrics_moved_to_first(len(specs))
    metrics = {name: (value, update) for name, (value, _) in specs[0].eval_metric_ops.items()}
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


def _metrics_moved_to_first(towers: int) -> tf.Operation:
    """Adds the other towers' metric variables to the first tower's, and resets them."""
    variables = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
    each = len(variables) // towers
    if len(variables) % towers:
        raise ValueError(
            "Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. Expected "
            f"{each * towers} local variables, but got {len(variables)} instead."
        )
    moved = []
    for i in range(each):
        others = variables[i + each :: each]
        added = variables[i].assign_add(tf.add_n([other.read_value() for other in others]))
        with tf.control_dependencies([added]):
            moved += [other.assign(tf.zeros_like(other)) for other in others]
    return tf.group(*moved)


def _joined(predictions: list[Any]) -> Any:
    if not isinstance(predictions[0], dict):
        return tf.concat(predictions, 0)
    return {
        name: tf.concat([each[name] for each in predictions], 0, name=name)
        for name in predictions[0]
    }


def _joined_output(outputs: list[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, export.PredictOutput):
        return export.PredictOutput(_joined([output.outputs for output in outputs]))
    if isinstance(first, export.RegressionOutput):
        return export.RegressionOutput(tf.concat([output.value for output in outputs], 0))
    scores = None if first.scores is None else tf.concat([o.scores for o in outputs], 0)
    classes = None if first.classes is None else tf.concat([o.classes for o in outputs], 0)
    return export.ClassificationOutput(scores=scores, classes=classes)


class _ClippingOptimizer(tf.train.Optimizer):
    def __init__(self, optimizer: tf.train.Optimizer, clip_norm: float):
        super().__init__(use_locking=False, name=optimizer.get_name())
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    compute_gradients = property(operator.attrgetter("_optimizer.compute_gradients"))
    get_slot = property(operator.attrgetter("_optimizer.get_slot"))
    get_slot_names = property(operator.attrgetter("_optimizer.get_slot_names"))
    variables = property(operator.attrgetter("_optimizer.variables"))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        clipped = [
            (None if grad is None else tf.clip_by_norm(grad, self._clip_norm), variable)
            for grad, variable in grads_and_vars
        ]
        return self._optimizer.apply_gradients(clipped, global_step, name)


def clip_gradients_by_norm(optimizer: tf.train.Optimizer, clip_norm: float) -> tf.train.Optimizer:
    """Wraps an optimizer to clip each variable's gradient to an L2 norm."""
    return _ClippingOptimizer(optimizer, clip_norm)


__all__ = ["TowerOptimizer", "clip_gradients_by_norm", "replicate_model_fn"]
