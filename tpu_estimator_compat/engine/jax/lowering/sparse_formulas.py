"""The formulas of TensorFlow's sparse updates of a row, by the suffixes of their ops' types.

Source: the CPU kernels in tensorflow/core/kernels/training_ops.cc. A function takes values by the
names of the op's inputs and attributes: rows of the variable and of its slots, the gradient's rows
`grad`, and scalars. It returns the new rows by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Rows = dict[str, Any]


def _adagrad(v: Rows) -> Rows:
    accum = v["accum"] + v["grad"] ** 2 if v["update_slots"] else v["accum"]
    return {"var": v["var"] - v["lr"] * v["grad"] * tf.math.rsqrt(accum), "accum": accum}


def _adagrad_v2(v: Rows) -> Rows:
    accum = v["accum"] + v["grad"] ** 2 if v["update_slots"] else v["accum"]
    return {
        "var": v["var"] - v["lr"] * v["grad"] / (tf.sqrt(accum) + v["epsilon"]),
        "accum": accum,
    }


def _adagrad_da(v: Rows) -> Rows:
    accum = v["gradient_accumulator"] + v["grad"]
    squared = v["gradient_squared_accumulator"] + v["grad"] ** 2
    step = tf.cast(v["global_step"], accum.dtype)
    scale = v["l2"] * step * v["lr"] + tf.sqrt(squared)
    return {
        "var": -v["lr"] * _shrunk(accum, v["l1"] * step) / scale,
        "gradient_accumulator": accum,
        "gradient_squared_accumulator": squared,
    }


def _momentum(v: Rows) -> Rows:
    accum = v["accum"] * v["momentum"] + v["grad"]
    change = v["grad"] + accum * v["momentum"] if v["use_nesterov"] else accum
    return {"var": v["var"] - v["lr"] * change, "accum": accum}


def _keras_momentum(v: Rows) -> Rows:
    accum = v["accum"] * v["momentum"] - v["grad"] * v["lr"]
    change = accum * v["momentum"] - v["grad"] * v["lr"] if v["use_nesterov"] else accum
    return {"var": v["var"] + change, "accum": accum}


def _ftrl(v: Rows) -> Rows:
    accum = v["accum"] + v["grad"] ** 2
    grad = v["grad"] + 2.0 * v.get("l2_shrinkage", 0.0) * v["var"]
    lr, by_lr = v["lr"], v["multiply_linear_by_lr"]
    power, power_before = (tf.pow(a, -v["lr_power"]) for a in (accum, v["accum"]))
    change = (power - power_before) * v["var"]
    if by_lr:
        linear, l1, scale = v["linear"] + grad * lr - change, v["l1"] * lr, power + 2 * v["l2"] * lr
    else:
        linear, l1, scale = v["linear"] + grad - change / lr, v["l1"], power / lr + 2 * v["l2"]
    return {"var": -_shrunk(linear, l1) / scale, "accum": accum, "linear": linear}


def _adadelta(v: Rows) -> Rows:
    rho, epsilon = v["rho"], v["epsilon"]
    accum = v["accum"] * rho + v["grad"] ** 2 * (1.0 - rho)
    update = tf.sqrt(v["accum_update"] + epsilon) * tf.math.rsqrt(accum + epsilon) * v["grad"]
    return {
        "var": v["var"] - update * v["lr"],
        "accum": accum,
        "accum_update": v["accum_update"] * rho + update**2 * (1.0 - rho),
    }


def _rms_prop(v: Rows) -> Rows:
    ms = v["ms"] * v["rho"] + v["grad"] ** 2 * (1.0 - v["rho"])
    mom = v["mom"] * v["momentum"] + tf.math.rsqrt(ms + v["epsilon"]) * v["lr"] * v["grad"]
    return {"var": v["var"] - mom, "ms": ms, "mom": mom}


def _centered_rms_prop(v: Rows) -> Rows:
    ms = v["ms"] * v["rho"] + v["grad"] ** 2 * (1.0 - v["rho"])
    mg = v["mg"] * v["rho"] + v["grad"] * (1.0 - v["rho"])
    scale = tf.math.rsqrt(ms - mg**2 + v["epsilon"])
    mom = v["mom"] * v["momentum"] + scale * v["lr"] * v["grad"]
    return {"var": v["var"] - mom, "mg": mg, "ms": ms, "mom": mom}


def _proximal_adagrad(v: Rows) -> Rows:
    accum = v["accum"] + v["grad"] ** 2
    lr = v["lr"] * tf.math.rsqrt(accum)
    return {"var": _proximal(v, lr), "accum": accum}


def _proximal_gradient_descent(v: Rows) -> Rows:
    return {"var": _proximal(v, v["alpha"])}


def _proximal(v: Rows, lr: Any) -> Any:
    return _shrunk(v["var"] - lr * v["grad"], lr * v["l1"]) / (1.0 + lr * v["l2"])


def _shrunk(x: Any, by: Any) -> Any:
    """`x` with an absolute value that is smaller by `by`, but not below zero."""
    return tf.sign(x) * tf.maximum(tf.abs(x) - by, 0.0)


FORMULAS: dict[str, Callable[[Rows], Rows]] = {
    "Adadelta": _adadelta,
    "Adagrad": _adagrad,
    "AdagradDA": _adagrad_da,
    "AdagradV2": _adagrad_v2,
    "CenteredRMSProp": _centered_rms_prop,
    "Ftrl": _ftrl,
    "FtrlV2": _ftrl,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "ProximalAdagrad": _proximal_adagrad,
    "ProximalGradientDescent": _proximal_gradient_descent,
    "RMSProp": _rms_prop,
}
