"""Head of several heads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import base, keras_metrics
from tpu_estimator_compat.canned.heads.base import Head, Metrics
from tpu_estimator_compat.canned.heads.problems import DEFAULT_KEY, PREDICT_KEY
from tpu_estimator_compat.canned.keys import MetricKeys
from tpu_estimator_compat.export.outputs import ExportOutput, PredictOutput
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys


class MultiHead(Head):
    """Head of several heads, each with labels and logits of its own, whose losses are added.

    Labels are a dict by the names of heads. Logits are such a dict, or one tensor whose last
    dimension has the logits of the first head, then those of the second.

    Args:
      heads: heads with names. Exported models answer by the first where nothing else is asked.
      head_weights: of their losses; None for equal ones.

    Raises:
      ValueError: no heads, one without a name, or another number of weights.
    """

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None = None):
        check_heads(heads, head_weights)
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> Any:
        return sum(head.logits_dimension for head in self._heads)

    @property
    def loss_reduction(self) -> str:
        reductions = [head.loss_reduction for head in self._heads]
        if len(set(reductions)) > 1:
            raise ValueError(
                f"The loss_reduction must be the same for different heads. Given: {reductions}"
            )
        return reductions[0]

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> tf.Tensor:
        of_head = split(self._heads, logits, labels)
        losses = [
            head.loss(labels[head.name], of_head[head.name], features, mode) for head in self._heads
        ]
        with tf.name_scope("merge_losses"):
            return merged_loss(losses, self._head_weights, regularization_losses)

    def predictions(self, logits: Any, keys: Iterable[str] | None = None) -> dict[Any, tf.Tensor]:
        of_head = split(self._heads, logits)
        return {
            (head.name, key): value
            for head in self._heads
            for key, value in head.predictions(of_head[head.name]).items()
        }

    def metrics(self, regularization_losses: Sequence[tf.Tensor] | None = None) -> Metrics:
        found: Metrics = {}
        if regularization_losses is not None:
            key = MetricKeys.LOSS_REGULARIZATION
            found[self._summary_key(key)] = keras_metrics.mean(key)
        for head in self._heads:
            key = f"{MetricKeys.LOSS}/{head.name}"
            found[key] = keras_metrics.mean(key)
        return found

    def update_metrics(
        self,
        eval_metrics: Metrics,
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> Metrics:
        of_head = split(self._heads, logits, labels)
        if regularization_losses is not None:
            key = self._summary_key(MetricKeys.LOSS_REGULARIZATION)
            eval_metrics[key].update_state(tf.add_n(regularization_losses))
        for head in self._heads:
            own_logits, own_labels = of_head[head.name], labels[head.name]
            loss = head.loss(own_labels, own_logits, features)
            eval_metrics[f"{MetricKeys.LOSS}/{head.name}"].update_state(loss)
            updated = head.update_metrics(head.metrics(), features, own_logits, own_labels)
            eval_metrics.update(updated or {})
        return eval_metrics

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> EstimatorSpec:
        if mode not in (ModeKeys.PREDICT, ModeKeys.EVAL, ModeKeys.TRAIN):
            raise ValueError(f"mode={mode} unrecognized")
        regularization = regularization_losses
        with tf.name_scope(self.name):
            of_head = split(self._heads, logits, labels)
            predictions = self.predictions(of_head)
            if mode == ModeKeys.EVAL:
                loss = self.loss(labels, of_head, features, mode, regularization)
                metrics = self.metrics(regularization)
                self.update_metrics(metrics, features, of_head, labels, mode, regularization)
                return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
            specs = {
                head.name: head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    logits=of_head[head.name],
                    labels=labels[head.name] if labels else None,
                    train_op_fn=without_step,
                )
                for head in self._heads
            }
            if mode == ModeKeys.PREDICT:
                outputs = merged_outputs({name: s.export_outputs for name, s in specs.items()})
                return EstimatorSpec(mode, predictions, export_outputs=outputs)
            losses = [spec.loss for spec in specs.values()]
            loss = merged_loss(losses, self._head_weights, regularization)
        train_op = base.create_train_op(
            loss, optimizer, trainable_variables, train_op_fn, update_ops, self.loss_reduction
        )
        base.create_summaries(loss, regularization)
        return EstimatorSpec(mode, predictions, loss, train_op)


def without_step(loss: tf.Tensor) -> tf.Operation:
    """The `train_op_fn` of a head whose loss is a part of another's."""
    return tf.no_op()


def check_heads(heads: Sequence[Any], weights: Sequence[float] | None) -> None:
    """Refuses heads that cannot go together; see `MultiHead`."""
    if not heads:
        raise ValueError(f"Must specify heads. Given: {heads}")
    if weights and len(weights) != len(heads):
        raise ValueError(
            "heads and head_weights must have the same size. "
            f"Given len(heads): {len(heads)}. Given len(head_weights): {len(weights)}."
        )
    for head in heads:
        if head.name is None:
            raise ValueError(f"All given heads must have name specified. Given: {head}")


def split(heads: Sequence[Any], logits: Any, labels: Any = None) -> Mapping[str, Any]:
    """The logits of each head, by its name.

    Raises:
      ValueError: a head has no logits, or, where there are labels, no labels.
    """
    names = [head.name for head in heads]
    if labels is not None:
        if not isinstance(labels, dict):
            raise ValueError(f"labels must be a dict. Given: {labels}")
        _check_names("labels", names, labels)
    if isinstance(logits, dict):
        _check_names("logits", names, logits)
        return logits
    logits = tf.convert_to_tensor(logits)
    sizes = [head.logits_dimension for head in heads]
    if logits.shape[-1] not in (None, sum(sizes)):
        raise ValueError(
            f"Could not split logits of shape {logits.shape.as_list()!r} among the heads with "
            f"individual logits dimensions: {sizes!r}. The last dimension of the logits tensor "
            f"should equal {sum(sizes)} but is {logits.shape[-1]}."
        )
    with tf.name_scope("split_logits"):
        return dict(zip(names, tf.split(logits, sizes, axis=-1), strict=True))


def _check_names(what: str, names: Sequence[str], given: Mapping[str, Any]) -> None:
    if missing := [name for name in names if name not in given]:
        raise ValueError(f"{what} has missing values for head(s): {missing}")


def merged_loss(
    losses: Sequence[tf.Tensor],
    weights: Sequence[float],
    regularization_losses: Sequence[tf.Tensor] | None,
) -> tf.Tensor:
    """The weighted sum of the losses of heads, and what regularization adds."""
    if weights:
        losses = [loss * weight for loss, weight in zip(losses, weights, strict=True)]
    return tf.add_n([*losses, *(regularization_losses or ())])


def merged_outputs(of_heads: Mapping[str, Mapping[str, ExportOutput]]) -> dict[str, ExportOutput]:
    """What the signatures of several heads answer.

    Args:
      of_heads: what those of each head answer, by its name; the first head's is the default.

    Returns:
      By name of head, and `name/key`, the outputs of each; and the predictions of all, by
      `name/key`.
    """
    first = next(iter(of_heads))
    merged: dict[str, ExportOutput] = {DEFAULT_KEY: _default(first, of_heads[first])}
    predictions = {}
    for name, outputs in of_heads.items():
        for key, output in outputs.items():
            merged[name if key == DEFAULT_KEY else f"{name}/{key}"] = output
            if key == PREDICT_KEY and isinstance(output, PredictOutput):
                predictions.update({f"{name}/{k}": v for k, v in output.outputs.items()})
    return {**merged, PREDICT_KEY: PredictOutput(predictions)}


def _default(name: str, outputs: Mapping[str, ExportOutput]) -> ExportOutput:
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    if DEFAULT_KEY not in outputs:
        raise ValueError(
            f"{name} did not specify default export_outputs. Given: {outputs} Suggested fix: Use "
            f"one of the heads in tf.estimator, or include key {DEFAULT_KEY} in export_outputs."
        )
    return outputs[DEFAULT_KEY]
