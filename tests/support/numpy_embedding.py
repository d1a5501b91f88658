"""TPU embedding in plain NumPy: what tables hold after a step, and what a step is given of them.

Written from the definitions, an example and an id at a time, in float64.
"""

import numpy as np


def weights_of(combiner, weights):
    weights = np.asarray(weights, np.float64)
    if combiner == "mean":
        total = weights.sum()
    elif combiner == "sqrtn":
        total = np.sqrt((weights**2).sum())
    else:
        total = 1.0
    return weights / total if len(weights) and total else weights


def activation(table, examples, combiner, length=0):
    """What model_fn is given.

    Args:
        table: Array of shape [rows, dimension].
        examples: For every example a list of (id, weight).
        combiner: "sum", "mean", "sqrtn" or None.
        length: 0, or how many ids of an example are looked up one by one.
    """
    dimension = table.shape[1]
    if length:
        found = np.zeros((len(examples), length, dimension))
        for i, example in enumerate(examples):
            for j, (row, weight) in enumerate(example[:length]):
                found[i, j] = table[row] * weights_of(combiner, [weight])[0]
        return found
    found = np.zeros((len(examples), dimension))
    for i, example in enumerate(examples):
        counts = weights_of(combiner, [weight for _, weight in example])
        for (row, _), count in zip(example, counts, strict=True):
            found[i] += table[row] * count
    return found


def row_gradients(gradient, examples, combiner, length=0):
    sums = {}
    for i, example in enumerate(examples):
        if length:
            for j, (row, weight) in enumerate(example[:length]):
                count = weights_of(combiner, [weight])[0]
                sums[row] = sums.get(row, 0.0) + gradient[i, j] * count
            continue
        counts = weights_of(combiner, [weight for _, weight in example])
        for (row, _), count in zip(example, counts, strict=True):
            sums[row] = sums.get(row, 0.0) + gradient[i] * count
    return sums


def add(*all_sums):
    """Gradients of one table out of those of its features."""
    total = {}
    for sums in all_sums:
        for row, gradient in sums.items():
            total[row] = total.get(row, 0.0) + gradient
    return total


SLOTS = {
    "StochasticGradientDescent": 0,
    "Adagrad": 1,
    "ProximalAdagrad": 1,
    "Adam": 2,
    "Ftrl": 2,
    "Momentum": 1,
    "RMSProp": 2,
}


def first_slots(name, o, shape):
    first = [0.0, 0.0]
    if name in ("Adagrad", "ProximalAdagrad"):
        first = [o.get("initial_accumulator", 0.1)]
    if name == "Ftrl":
        first = [o.get("initial_accumulator_value", 0.1), 0.0]
    return [np.full(shape, value) for value in first[: SLOTS[name]]]


def update(name, o, table, slots, sums, rate):
    """Updates a table and its slots in place."""
    sums = dict(sums)
    if name == "Adam" and not o.get("lazy_adam", True):
        sums = {row: sums.get(row, np.zeros(table.shape[1])) for row in range(len(table))}
    for row, g in sums.items():
        g = np.clip(g, o.get("clip_gradient_min"), o.get("clip_gradient_max"))
        if decay := o.get("weight_decay_factor"):
            by_rate = o.get("multiply_weight_decay_factor_by_learning_rate")
            table[row] -= table[row] * decay * (rate if by_rate else 1.0)
        old = [slot[row].copy() for slot in slots]
        table[row], new = RULES[name](o, table[row].copy(), old, g, rate)
        for slot, value in zip(slots, new, strict=True):
            slot[row] = value
        table[row] = np.clip(table[row], o.get("clip_weight_min"), o.get("clip_weight_max"))


def _descend(o, w, slots, g, rate):
    return w - rate * g, []


def _adagrad(o, w, slots, g, rate):
    a = slots[0] + g**2
    return w - rate * g / np.sqrt(a), [a]


def _proximal_adagrad(o, w, slots, g, rate):
    a = slots[0] + g**2
    rate = rate / np.sqrt(a)
    x = w - rate * g
    l1, l2 = o.get("l1_regularization_strength", 0), o.get("l2_regularization_strength", 0)
    return np.sign(x) * np.maximum(np.abs(x) - rate * l1, 0) / (1 + rate * l2), [a]


def _adam(o, w, slots, g, rate):
    b1, b2, e = o.get("beta1", 0.9), o.get("beta2", 0.999), o.get("epsilon", 1e-8)
    m, v = b1 * slots[0] + (1 - b1) * g, b2 * slots[1] + (1 - b2) * g**2
    divisor = np.sqrt(v + e**2) if o.get("sum_inside_sqrt", True) else np.sqrt(v) + e
    return w - rate * m / divisor, [m, v]


def _ftrl(o, w, slots, g, rate):
    a, z = slots
    power = -o.get("learning_rate_power", -0.5)
    l1, l2 = o.get("l1_regularization_strength", 0), o.get("l2_regularization_strength", 0)
    by_rate = o.get("multiply_linear_by_learning_rate")
    z = z / rate if by_rate else z
    b = a + g**2
    z = z + g - (b**power - a**power) / rate * w
    divisor = (o.get("beta", 0) + b**power) / rate + 2 * l2
    w = np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / divisor, 0.0)
    return w, [b, z * rate if by_rate else z]


def _momentum(o, w, slots, g, rate):
    a = o["momentum"] * slots[0] + g
    return w - rate * (g + o["momentum"] * a if o.get("use_nesterov") else a), [a]


def _rms_prop(o, w, slots, g, rate):
    s = o["rho"] * slots[0] + (1 - o["rho"]) * g**2
    d = o["momentum"] * slots[1] + rate * g / np.sqrt(s + o["epsilon"])
    return w - d, [s, d]


RULES = {
    "StochasticGradientDescent": _descend,
    "Adagrad": _adagrad,
    "ProximalAdagrad": _proximal_adagrad,
    "Adam": _adam,
    "Ftrl": _ftrl,
    "Momentum": _momentum,
    "RMSProp": _rms_prop,
}
