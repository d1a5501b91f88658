"""What scripts for TPUs of 2018 have in common."""

from __future__ import annotations


def test_queues_layers_of_keras_and_the_shards_of_a_tpu_that_is_not_there(run, tmp_path):
    """What scripts for TPUs of 2018 have in common: they train where there is none."""
    (tmp_path / "lines.csv").write_text("".join(f"{i / 8},{i / 4}\n" for i in range(8)))
    done = run("""
        import tensorflow as tf
        from tensorflow.contrib.cluster_resolver.python.training import TPUClusterResolver
        from tensorflow.contrib.tpu.python.tpu import tpu_config, tpu_estimator, tpu_optimizer
        from tensorflow.python import pywrap_tensorflow
        from tensorflow.python.keras import backend as K
        from tensorflow.python.keras.layers import BatchNormalization, Dense

        tf.flags.DEFINE_integer("num_shards", 8, "TPU cores.")
        FLAGS = tf.flags.FLAGS


        def model_fn(features, labels, mode, params):
            hidden = BatchNormalization()(Dense(4)(features), training=True)
            loss = K.mean(K.square(Dense(1)(hidden) - labels))
            optimizer = tpu_optimizer.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
            return tpu_estimator.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


        def input_fn(params):
            names = tf.train.string_input_producer(["lines.csv"])
            _, line = tf.TextLineReader().read(names)
            x, y = tf.decode_csv(line, [[0.0], [0.0]])
            return tf.train.shuffle_batch([[x], [y]], params["batch_size"], 64, 8)


        def main(_):
            config = tpu_config.RunConfig(
                cluster=TPUClusterResolver(""),
                model_dir="model",
                tpu_config=tpu_config.TPUConfig(2, num_shards=FLAGS.num_shards),
            )
            estimator = tpu_estimator.TPUEstimator(
                model_fn, config=config, use_tpu=True, train_batch_size=8
            )
            estimator.train(input_fn, max_steps=4)
            reader = pywrap_tensorflow.NewCheckpointReader(tf.train.latest_checkpoint("model"))
            print(reader.get_tensor("global_step"))


        if __name__ == "__main__":
            tf.app.run()
    """)
    assert done.stdout.split() == ["4"], done.stderr
    assert "num_shards is 8, but there is no TPU, and this machine has 1 replica" in done.stderr
    assert "contains one or more QueueRunners" in done.stderr


def test_a_keras_model_that_was_for_a_tpu(run):
    """In graphs, with an optimizer of `tf.train`, as scripts of Colab had it."""
    done = run("""
        import os

        import numpy as np
        import tensorflow as tf

        x = np.random.RandomState(0).randn(64, 4).astype(np.float32)
        y = x.sum(axis=1, keepdims=True)
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        worker = "grpc://" + os.environ.get("COLAB_TPU_ADDR", "localhost:8470")
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver("")
        model = tf.contrib.tpu.keras_to_tpu_model(
            model, strategy=tf.contrib.tpu.TPUDistributionStrategy(resolver)
        )
        model.compile(tf.train.AdamOptimizer(0.1), "mse", ["mae"])
        model.fit(x, y, epochs=20, batch_size=16, verbose=0)
        loss, error = model.evaluate(x, y, verbose=0)
        weights = model.sync_to_cpu().get_weights()
        print(tf.executing_eagerly(), loss < 0.1, model.predict(x).shape, len(weights))
    """)
    assert done.stdout.split("\n")[-2] == "False True (64, 1) 2", done.stdout + done.stderr
