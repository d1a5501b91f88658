"""How a program trains: its optimizer, learning rate, gradients and the counting of steps.

Whatever else reads what an update changes comes before it, since in the original such reads race.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from support.sides.races import late_zero

OPTIMIZERS = {
    "GradientDescent": tf.train.GradientDescentOptimizer,
    "Momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "Nesterov": lambda rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "Adam": lambda rate: tf.train.AdamOptimizer(rate, epsilon=1e-4),
    "Adagrad": tf.train.AdagradOptimizer,
    "RMSProp": lambda rate: tf.train.RMSPropOptimizer(rate, momentum=0.5, epsilon=1e-3),
    "CenteredRMSProp": lambda rate: tf.train.RMSPropOptimizer(rate, centered=True, epsilon=1e-2),
    "Ftrl": lambda rate: tf.train.FtrlOptimizer(rate, l2_regularization_strength=0.01),
    "Adadelta": lambda rate: tf.train.AdadeltaOptimizer(rate, epsilon=1e-3),
    "ProximalAdagrad": lambda rate: tf.train.ProximalAdagradOptimizer(
        rate, l1_regularization_strength=0.001
    ),
    "ProximalGradientDescent": lambda rate: tf.train.ProximalGradientDescentOptimizer(
        rate, l2_regularization_strength=0.01
    ),
    "AdagradDA": lambda rate: tf.train.AdagradDAOptimizer(rate, tf.train.get_global_step()),
}


def _rate(choices):
    kind, step = choices["rate"], tf.train.get_global_step()
    if kind == "fixed":
        return 0.1
    if kind in ("exponential", "staircase"):
        return tf.train.exponential_decay(0.2, step, 2, 0.5, staircase=kind == "staircase")
    if kind == "polynomial":
        return tf.train.polynomial_decay(0.2, step, 5, 0.01, power=2.0)
    if kind == "piecewise":
        return tf.train.piecewise_constant(step, [1, 3], [0.2, 0.05, 0.01])
    if kind == "cosine":
        return tf.train.cosine_decay(0.2, step, 6)
    if kind == "inverse":
        return tf.train.inverse_time_decay(0.2, step, 1, 0.5)
    if kind == "variable":
        return (
            tf.get_variable("rate", [], initializer=tf.constant_initializer(0.15), trainable=False)
            * 1.0
        )
    return tf.placeholder_with_default(np.float32(0.1), [], "fed_rate")


def train_op(choices, loss, before):
    step = tf.train.get_or_create_global_step()
    rate = _rate(choices)
    if choices["rate"] not in ("fixed", "fed"):
        before = [*before, rate]
    before = [*before, loss, *tf.get_collection(tf.GraphKeys.UPDATE_OPS)]
    if choices["late"] == "yes":
        before.append(late_zero())
    with tf.control_dependencies(before):
        if choices["counting"] == "by_optimizer":
            return _updated(choices, loss, rate, step)
        added = COUNTED[choices["counting"]](step, before[0])
        with tf.control_dependencies([_updated(choices, loss, rate, None)]):
            if choices["counting"] != "in_cond":
                return tf.assign_add(step, added).op
            return tf.cond(
                tf.is_finite(loss), lambda: tf.group(tf.assign_add(step, added)), tf.no_op
            )


COUNTED = {
    "apart": lambda step, prediction: np.int64(1),
    "in_cond": lambda step, prediction: np.int64(1),
    "by_two": lambda step, prediction: np.int64(2),
    "uneven": lambda step, prediction: 1 + step % 3,
    "by_batch": lambda step, prediction: tf.shape(prediction, out_type=tf.int64)[0],
}
"""How much the global step grows in a run."""


def _updated(choices, loss, rate, step):
    if choices["optimizer"] == "two":
        return _by_two_optimizers(loss, rate, step)
    optimizer = OPTIMIZERS[choices["optimizer"]](rate)
    update = GRADIENTS[choices["gradients"]](optimizer, loss, step)
    if choices["after"] == "nothing":
        return update
    with tf.control_dependencies([update]):
        return AFTER[choices["after"]](loss, tf.trainable_variables())


def _by_two_optimizers(loss, rate, step):
    variables = tf.trainable_variables()
    gradients = tf.gradients(loss, variables)
    pairs = list(zip(gradients, variables, strict=True))
    first = tf.train.GradientDescentOptimizer(rate).apply_gradients(pairs[:1], step)
    if len(pairs) == 1:
        return first
    return tf.group(first, tf.train.AdamOptimizer(0.05, epsilon=1e-3).apply_gradients(pairs[1:]))


def _minimize(optimizer, loss, step):
    return optimizer.minimize(loss, step)


def _clipped_norm(optimizer, loss, step):
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
    return optimizer.apply_gradients(list(zip(clipped, variables, strict=True)), step)


def _clipped_values(optimizer, loss, step):
    pairs = [
        (tf.clip_by_value(tf.convert_to_tensor(gradient), -0.1, 0.1), variable)
        for gradient, variable in optimizer.compute_gradients(loss)
    ]
    return optimizer.apply_gradients(pairs, step)


def _scaled(optimizer, loss, step):
    pairs = optimizer.compute_gradients(loss * 4.0)
    return optimizer.apply_gradients(
        [(g * 0.25 if not isinstance(g, tf.IndexedSlices) else g, v) for g, v in pairs], step
    )


def _every_second(optimizer, loss, step):
    """Only in every second step; the step is counted in all."""
    now = tf.train.get_global_step()
    pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss)]
    optimizer_step = tf.cond(
        tf.equal(now % 2, 0), lambda: tf.group(optimizer.apply_gradients(pairs)), lambda: tf.no_op()
    )
    return _counted(optimizer_step, step)


def _counted(update, step):
    if step is None:
        return update
    with tf.control_dependencies([update]):
        return tf.assign_add(step, 1).op


def _accumulated(optimizer, loss, step):
    """The sum of two steps' gradients is applied by the second."""
    now = tf.train.get_global_step()
    pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss)]
    sums = [
        tf.get_variable(f"sum_{i}", v.shape, initializer=tf.zeros_initializer(), trainable=False)
        for i, (_, v) in enumerate(pairs)
    ]
    added = [tf.assign_add(total, g) for total, (g, _) in zip(sums, pairs, strict=True)]

    def applied():
        update = optimizer.apply_gradients(
            [(tf.identity(total) / 2.0, v) for total, (_, v) in zip(sums, pairs, strict=True)]
        )
        with tf.control_dependencies([update]):
            return tf.group(*[tf.assign(total, tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies(added):
        update = tf.cond(tf.equal(now % 2, 1), applied, lambda: tf.no_op())
    return _counted(update, step)


def _nan_guarded(optimizer, loss, step):
    pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss)]
    norm = tf.global_norm([g for g, _ in pairs])
    kept = [
        (tf.where(tf.fill(tf.shape(g), tf.is_finite(norm)), g, tf.zeros_like(g)), v)
        for g, v in pairs
    ]
    return optimizer.apply_gradients(kept, step)


def _alternating(optimizer, loss, step):
    """Even steps change the first variable, odd ones the rest."""
    now = tf.train.get_global_step()
    pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss)]
    parts = (pairs[:1], pairs[1:] or pairs)
    update = tf.cond(
        tf.equal(now % 2, 0),
        lambda: tf.group(optimizer.apply_gradients(parts[0])),
        lambda: tf.group(optimizer.apply_gradients(parts[1])),
    )
    return _counted(update, step)


GRADIENTS = {
    "minimize": _minimize,
    "clipped_norm": _clipped_norm,
    "clipped_values": _clipped_values,
    "scaled": _scaled,
    "every_second": _every_second,
    "accumulated": _accumulated,
    "nan_guarded": _nan_guarded,
    "alternating": _alternating,
}


def _clipped_after(loss, variables):
    return tf.group(*[tf.assign(v, tf.clip_by_value(v, -0.3, 0.3)) for v in variables])


def _decayed_after(loss, variables):
    return tf.group(*[tf.assign(v, v * 0.9) for v in variables])


def _copied_after(loss, variables):
    copies = [
        tf.get_variable(f"copy_{i}", v.shape, initializer=tf.zeros_initializer(), trainable=False)
        for i, v in enumerate(variables)
    ]
    return tf.group(*[tf.assign(copy, v) for copy, v in zip(copies, variables, strict=True)])


def _again(loss, variables):
    """Ref variables show the second update what the first one wrote, but for the activations."""
    return tf.train.GradientDescentOptimizer(0.05).minimize(loss * 0.5)


def _opposed(loss, variables):
    """As the generator of a GAN does, after the discriminator."""
    last = variables[-1:]
    return tf.train.AdamOptimizer(0.05, epsilon=1e-3, name="Other").minimize(-loss, var_list=last)


def _summed_after(loss, variables):
    with tf.control_dependencies(None):  # else the update is run to initialize them
        sums = [
            tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False, name=f"total_{i}")
            for i, v in enumerate(variables)
        ]
    added = [total.assign_add(v) for total, v in zip(sums, variables, strict=True)]
    with tf.control_dependencies(added):
        return tf.group(*[total.assign(total * 0.5) for total in sums])


def _scattered(loss, variables):
    shape, zeros = [3, 2], tf.zeros_initializer()
    memory = tf.get_variable("memory", shape, initializer=zeros, trainable=False)
    rows = tf.fill([2, 2], loss)
    seen = tf.get_variable("seen", [2], initializer=zeros, trainable=False)
    return tf.assign(
        seen, tf.reduce_sum(tf.gather(tf.scatter_add(memory, [0, 2], rows), [0, 1]), 1)
    )


def _by_name(loss, variables):
    """Names of ref variables and their reads."""
    graph, first = tf.get_default_graph(), variables[0].op.name
    read = graph.get_tensor_by_name(f"{first}/read:0")
    sizes = tf.stack([tf.reduce_sum(read), tf.reduce_sum(graph.get_tensor_by_name(f"{first}:0"))])
    seen = tf.get_variable("seen", [2], initializer=tf.zeros_initializer(), trainable=False)
    return tf.assign(seen, sizes)


AFTER = {
    "clip": _clipped_after,
    "decay": _decayed_after,
    "copy": _copied_after,
    "twice": _again,
    "gan": _opposed,
    "sums": _summed_after,
    "scatter": _scattered,
    "names": _by_name,
}
