"""A fixed piece of work like that of the tests, to tell a slow machine from a slow suite.

    reference.py        prints how many seconds the work took

Two processes side by side, as the test command has: each imports TensorFlow, then builds graphs,
traces functions and runs them. It uses nothing of this package, so no change of it makes the work
longer.
"""

import subprocess
import sys
import time

PROCESSES = 2
GRAPHS = 20
LAYERS = 12

WORK = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1

def layers(x, width):
    for i in range(LAYERS):
        with v1.variable_scope(f"layer_{i}"):
            weights = v1.get_variable("weights", [width, width], use_resource=True)
            x = tf.nn.relu(x @ weights)
    return tf.reduce_mean(x)

def train_in_a_session(width):
    with v1.Graph().as_default(), v1.Session() as session:
        loss = layers(tf.ones([4, width]), width)
        update = v1.train.AdamOptimizer(0.01).minimize(loss)
        session.run(v1.global_variables_initializer())
        for _ in range(5):
            session.run(update)

def train_in_a_function(width):
    weights = [tf.Variable(tf.ones([width, width])) for _ in range(LAYERS)]

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            for each in weights:
                x = tf.nn.relu(x @ each) / width
            loss = tf.reduce_mean(x)
        for each, gradient in zip(weights, tape.gradient(loss, weights)):
            each.assign_sub(0.01 * gradient)
        return loss

    for batch in tf.data.Dataset.from_tensors(np.ones([4, width], np.float32)).repeat(5):
        step(batch)

for i in range(GRAPHS):
    train_in_a_session(8 + i % 4)
    train_in_a_function(8 + i % 4)
"""


def main() -> int:
    code = WORK.replace("GRAPHS", str(GRAPHS)).replace("LAYERS", str(LAYERS))
    start = time.monotonic()
    running = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        for _ in range(PROCESSES)
    ]
    statuses = [process.wait() for process in running]
    print(round(time.monotonic() - start, 1))
    return max(map(abs, statuses))


if __name__ == "__main__":
    sys.exit(main())
