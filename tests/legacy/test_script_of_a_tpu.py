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
