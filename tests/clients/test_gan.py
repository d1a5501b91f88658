"""`tensorflow-gan` 2.1.0, by the name that scripts of TensorFlow 1 had for it: `tf.contrib.gan`."""

import pytest

from .runs import COMMAND, python

pytestmark = pytest.mark.full

SCRIPT = """
import numpy as np
import tensorflow as tf

layers = tf.contrib.layers
tfgan = tf.contrib.gan


def generator_fn(noise):
    return layers.fully_connected(noise, 4, activation_fn=None)


def discriminator_fn(data, unused_conditioning):
    return layers.linear(layers.fully_connected(data, 8), 1)


def train_input_fn():
    real = np.random.RandomState(0).randn(64, 4).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(real).repeat().batch(16)
    return tf.random_normal([16, 3]), data.make_one_shot_iterator().get_next()


estimator = tfgan.estimator.GANEstimator(
    "logdir",
    generator_fn=generator_fn,
    discriminator_fn=discriminator_fn,
    generator_loss_fn=tfgan.losses.wasserstein_generator_loss,
    discriminator_loss_fn=tfgan.losses.wasserstein_discriminator_loss,
    generator_optimizer=tf.train.AdamOptimizer(0.01, 0.5),
    discriminator_optimizer=tf.train.AdamOptimizer(0.01, 0.5),
)
estimator.train(train_input_fn, max_steps=3)
result = estimator.evaluate(train_input_fn, steps=2)
samples = list(estimator.predict(lambda: tf.data.Dataset.from_tensors(np.ones((5, 3), "f4"))))
print("done:", result["global_step"], np.isfinite(result["loss"]), len(samples))
"""


def test_contrib_gan(clients, tmp_path):
    (tmp_path / "gan.py").write_text(SCRIPT)
    assert "done: 3 True 5" in python(clients, tmp_path, "-m", *COMMAND, "gan.py")
