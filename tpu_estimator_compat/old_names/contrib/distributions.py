"""`tf.contrib.distributions`: the distributions that `tf.distributions` lacks."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow.compat.v1 as tf

_Normal = tf.distributions.Normal


class MultivariateNormalDiag(tf.distributions.Distribution):
    """Independent normal variables; one event is a vector of them.

    `loc` are means [..., k], by default zeros; `scale_diag` are standard deviations [..., k], by
    default ones. `scale_identity_multiplier` [...] is added to all deviations of an event; without
    `scale_diag`, it is the deviation. With `validate_args`, deviations of zero raise an error.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ):
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            loc, scale = _location_and_scale(loc, scale_diag, scale_identity_multiplier)
            if validate_args:
                nonzero = tf.assert_none_equal(scale, tf.zeros([], scale.dtype))
                with tf.control_dependencies([nonzero]):
                    scale = tf.identity(scale)
            self._each = _Normal(loc, tf.abs(scale), allow_nan_stats=allow_nan_stats)
            self._scale = tf.linalg.LinearOperatorDiag(scale)
        super().__init__(
            dtype=loc.dtype,
            reparameterization_type=tf.distributions.FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[loc, scale],
            name=scope,
        )

    loc = property(operator.attrgetter("_each.loc"))
    scale = property(operator.attrgetter("_scale"), doc="The deviations, as a diagonal operator.")
    _mean = property(operator.attrgetter("_each.mean"))
    _mode = property(operator.attrgetter("_each.mode"))
    _stddev = property(operator.attrgetter("_each.stddev"))
    _variance = property(operator.attrgetter("_each.variance"))

    def _batch_shape_tensor(self) -> tf.Tensor:
        return self._each.batch_shape_tensor()[:-1]

    def _batch_shape(self) -> tf.TensorShape:
        return self._each.batch_shape[:-1]

    def _event_shape_tensor(self) -> tf.Tensor:
        return self._each.batch_shape_tensor()[-1:]

    def _event_shape(self) -> tf.TensorShape:
        return self._each.batch_shape[-1:]

    def _sample_n(self, n: tf.Tensor, seed: int | None = None) -> tf.Tensor:
        return self._each.sample(n, seed)

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(self._each.log_prob(value), -1)

    def _prob(self, value: tf.Tensor) -> tf.Tensor:
        return tf.exp(self._log_prob(value))

    def _entropy(self) -> tf.Tensor:
        return tf.reduce_sum(self._each.entropy(), -1)

    def _covariance(self) -> tf.Tensor:
        return tf.linalg.diag(self._each.variance())


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` with `softplus(scale_diag)` as the standard deviations."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ):
        parameters = dict(locals())
        deviations = tf.nn.softplus(scale_diag)
        super().__init__(loc, deviations, None, validate_args, allow_nan_stats, name)
        self._parameters = parameters


def _location_and_scale(loc: Any, diagonal: Any, multiplier: Any) -> tuple[tf.Tensor, tf.Tensor]:
    if loc is None and diagonal is None:
        raise ValueError(
            "MultivariateNormalDiag needs loc or scale_diag: nothing else says how long an event"
            " is. Give at least one of them."
        )
    given = [x for x in (loc, diagonal) if x is not None]
    kind = next((x.dtype for x in given if hasattr(x, "dtype")), None)
    vectors = [tf.convert_to_tensor(x, kind) for x in given]
    dtype = vectors[0].dtype
    events = tf.ones_like(vectors[-1])
    means = tf.zeros([], dtype) if loc is None else vectors[0]
    scale = events if diagonal is None and multiplier is None else tf.zeros([], dtype)
    if diagonal is not None:
        scale += vectors[-1]
    if multiplier is not None:
        scale += tf.convert_to_tensor(multiplier, dtype)[..., tf.newaxis] * events
    return means, scale


@tf.distributions.RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _divergence(
    a: MultivariateNormalDiag, b: MultivariateNormalDiag, name: str | None = None
) -> tf.Tensor:
    with tf.name_scope(name or "kl_multivariate_normal_diag"):
        return tf.reduce_sum(tf.distributions.kl_divergence(a._each, b._each), -1)
