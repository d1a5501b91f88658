"""A script of 2018 that trains one of the models of the record; `record.py` runs it on a chip.

    python -m tpu_estimator_compat run --runtime jax tests/chips/train.py --model bert_base

Its last line of output is a JSON object: losses, steps per second, metrics, host calls.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

CLASSES = 10
ENCODERS = {  # layers, hidden size, heads, length, words
    "encoder": (2, 128, 2, 64, 1000),
    "bert_base": (12, 768, 12, 128, 30522),
}
RESNETS = {  # blocks, filters of the first, side of the images
    "resnet": ((1, 1, 1, 1), 16, 64),
    "resnet50": ((3, 4, 6, 3), 64, 224),
}
MODELS = ("convnet", *ENCODERS, *RESNETS)


def examples(model, count):
    """Features and labels of `count` examples; the label can be read off the features."""
    rng = np.random.RandomState(1)
    if model in ENCODERS:
        *_, length, words = ENCODERS[model]
        features = rng.randint(words, size=(count, length)).astype(np.int32)
        return features, features[:, 0] % CLASSES
    side = RESNETS[model][2] if model in RESNETS else 28
    labels = rng.randint(CLASSES, size=count).astype(np.int32)
    images = rng.normal(size=(count, side, side, 3)).astype(np.float32)
    return images + labels[:, None, None, None].astype(np.float32) / CLASSES, labels


def normalized(x, name):
    with tf.variable_scope(name):
        width = int(x.shape[-1])
        gamma = tf.get_variable("gamma", [width], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [width], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-6)


def dense(x, units, name, activation=None):
    initializer = tf.truncated_normal_initializer(stddev=0.02)
    return tf.layers.dense(x, units, activation, kernel_initializer=initializer, name=name)


def gelu(x):
    return x * 0.5 * (1.0 + tf.erf(x / math.sqrt(2.0)))


def attention(x, heads, dropout):
    """Self-attention, [batch, length, hidden] to the same."""
    _, length, hidden = x.shape.as_list()

    def split(name):
        parts = tf.reshape(dense(x, hidden, name), [-1, length, heads, hidden // heads])
        return tf.transpose(parts, [0, 2, 1, 3])

    scores = tf.matmul(split("query"), split("key"), transpose_b=True)
    weights = dropout(tf.nn.softmax(scores / math.sqrt(hidden / heads)))
    context = tf.transpose(tf.matmul(weights, split("value")), [0, 2, 1, 3])
    return dropout(dense(tf.reshape(context, [-1, length, hidden]), hidden, "output"))


def encoder(ids, sizes, rate):
    layers, hidden, heads, length, words = sizes

    def dropout(x):
        return tf.nn.dropout(x, keep_prob=1.0 - rate) if rate else x

    with tf.variable_scope("encoder"):
        initializer = tf.truncated_normal_initializer(stddev=0.02)
        table = tf.get_variable("words", [words, hidden], initializer=initializer)
        places = tf.get_variable("positions", [length, hidden], initializer=initializer)
        x = dropout(normalized(tf.nn.embedding_lookup(table, ids) + places, "norm"))
        for i in range(layers):
            with tf.variable_scope(f"layer_{i}"):
                with tf.variable_scope("attention"):
                    x = normalized(x + attention(x, heads, dropout), "norm")
                inner = dense(x, 4 * hidden, "intermediate", gelu)
                x = normalized(x + dropout(dense(inner, hidden, "output")), "norm")
        x = dense(x[:, 0], hidden, "pooler", tf.tanh)
    return dense(x, CLASSES, "classifier")


def resnet(images, sizes, training):
    blocks, filters, _ = sizes

    def conv(x, filters, kernel, strides=1):
        x = tf.layers.conv2d(x, filters, kernel, strides, "same", use_bias=False)
        return tf.layers.batch_normalization(x, training=training)

    x = tf.nn.relu(conv(images, filters, 7, 2))
    x = tf.layers.max_pooling2d(x, 3, 2, "same")
    for stage, count in enumerate(blocks):
        width = filters * 2**stage
        for block in range(count):
            strides = 2 if stage and not block else 1
            short = x if block else conv(x, 4 * width, 1, strides)
            inner = tf.nn.relu(conv(x, width, 1))
            inner = tf.nn.relu(conv(inner, width, 3, strides))
            x = tf.nn.relu(conv(inner, 4 * width, 1) + short)
    return tf.layers.dense(tf.reduce_mean(x, [1, 2]), CLASSES)


def convnet(images, rate):
    x = images
    for filters in (32, 64):
        x = tf.layers.conv2d(x, filters, 3, padding="same", activation=tf.nn.relu)
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.dense(tf.layers.flatten(x), 128, tf.nn.relu)
    return tf.layers.dense(tf.layers.dropout(x, rate, training=rate > 0), CLASSES)


def logits_of(features, params, training):
    model, rate = params["model"], params["dropout"] if training else 0.0
    if model in ENCODERS:
        return encoder(features, ENCODERS[model], rate)
    if model in RESNETS:
        return resnet(features, RESNETS[model], training)
    return convnet(features, rate)


def in_bfloat16(features, params, training):
    if features.dtype.is_floating:
        features = tf.cast(features, tf.bfloat16)
    with tf.contrib.tpu.bfloat16_scope():
        return tf.cast(logits_of(features, params, training), tf.float32)


def model_fn(features, labels, mode, params):
    build = in_bfloat16 if params["bfloat16"] else logits_of
    logits = build(features, params, mode == tf.estimator.ModeKeys.TRAIN)
    if params["init_checkpoint"]:
        tf.train.init_from_checkpoint(params["init_checkpoint"], {"encoder/": "encoder/"})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (metric_fn, [labels, logits])
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    step = tf.train.get_global_step()
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(params["rate"]))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        train_op = optimizer.minimize(loss, step)
    told = (host_call_fn, [tf.reshape(step, [1]), tf.reshape(loss, [1])])
    host_call = told if params["host_call"] else None
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))}


TOLD = []


def host_call_fn(step, loss):
    return tf.py_func(lambda *values: TOLD.append([float(v[0]) for v in values]), [step, loss], [])


class Watch(tf.train.SessionRunHook):
    def __init__(self):
        self.losses, self.times = [], []

    def begin(self):
        self._fetched = [tf.train.get_global_step(), tf.get_collection(tf.GraphKeys.LOSSES)[-1]]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetched)

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        self.losses.append([int(step), float(loss)])
        self.times.append([int(step), time.time()])

    def steps_per_second(self):
        """Without the first two loops, which compile."""
        if len(self.times) < 4:
            return None
        (first, begun), (last, ended) = self.times[1], self.times[-1]
        return (last - first) / (ended - begun)


def input_fn_of(model):
    def input_fn(params):
        batch = params["batch_size"]
        dataset = tf.data.Dataset.from_tensor_slices(examples(model, 4 * batch)).cache().repeat()
        return dataset.batch(batch, drop_remainder=True).prefetch(4)

    return input_fn


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--model_dir")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--loop", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--save_every", type=int)
    parser.add_argument("--init_checkpoint")
    parser.add_argument("--save_step", help="folder for the step, see saved_step.py")
    for flag in ("--bfloat16", "--host_call", "--evaluate"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def main():
    flags = parsed()
    loop = tf.contrib.tpu.TPUConfig(iterations_per_loop=flags.loop, num_shards=1)
    config = tf.contrib.tpu.RunConfig(
        model_dir=flags.model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=flags.save_every or flags.steps,
        tpu_config=loop,
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=config,
        params=vars(flags),
        train_batch_size=flags.batch,
        eval_batch_size=flags.batch,
    )
    watch, input_fn = Watch(), input_fn_of(flags.model)
    hooks = [watch]
    if flags.save_step:
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
        from chips.saved_step import SavesStep

        hooks.append(SavesStep(flags.save_step))
    estimator.train(input_fn, max_steps=flags.steps, hooks=hooks)
    found = {"losses": watch.losses, "steps_per_second": watch.steps_per_second(), "told": TOLD}
    if flags.evaluate:
        metrics = estimator.evaluate(input_fn, steps=4)
        found["evaluated"] = {name: float(value) for name, value in metrics.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
