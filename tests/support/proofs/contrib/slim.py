"""Proofs of `tf.contrib.slim` and its deep modules, and of `tf.contrib.losses`."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, graph, proves, variables_of

SLIM = "tf.contrib.slim"


@proves("tf.contrib.slim")
def has_slim(slim):
    def build():
        with (
            slim.arg_scope([slim.conv2d], activation_fn=None, normalizer_fn=slim.batch_norm),
            slim.arg_scope([slim.batch_norm], scale=True, is_training=True),
        ):
            return slim.repeat(tf.ones([1, 8, 8, 2]), 2, slim.conv2d, 4, [3, 3])

    assert evaluate(build).shape == (1, 8, 8, 4)
    names = variables_of(build)
    assert "Repeat/convolution2d_1/weights" in names
    assert "Repeat/convolution2d_2/BatchNorm/gamma" in names


@proves("tf.contrib.slim.nets")
def has_nets(nets):
    from tpu_estimator_compat.old_names.contrib import slim

    with graph():
        with slim.arg_scope(nets.resnet_v1.resnet_arg_scope()):
            logits, _ = nets.resnet_v1.resnet_v1_50(tf.ones([1, 32, 32, 3]), 10)
        assert logits.shape == (1, 1, 1, 10)
        assert len(tf.global_variables()) > 200
        assert tf.global_variables()[0].op.name == "resnet_v1_50/conv1/weights"


@proves("tf.contrib.slim.learning")
def learns(learning):
    with graph():
        tf.train.create_global_step()
        loss = tf.get_variable("v", initializer=2.0) ** 2
        train_op = learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
        final = learning.train(train_op, None, number_of_steps=3, log_every_n_steps=0)
    # Each step multiplies the variable by 0.8; the loss is that before the third.
    np.testing.assert_allclose(final, (2 * 0.8**2) ** 2, rtol=1e-5)


@proves(f"{SLIM}.python.slim.evaluation")
def evaluates(evaluation, tmp_path):
    with graph(), tf.Session() as session:
        tf.train.create_global_step()
        tf.get_variable("v", initializer=2.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with graph():
        tf.train.create_global_step()
        value = tf.get_variable("v", []) * 3
        result = evaluation.evaluate_once("", path, str(tmp_path), final_op=value)
    assert result == 6.0


@proves(f"{SLIM}.python.slim.model_analyzer")
def analyzes(model_analyzer):
    with graph():
        tf.get_variable("v", [2, 3])
        assert model_analyzer.analyze_vars(tf.global_variables()) == (6, 24)


@proves(f"{SLIM}.python.slim.queues")
def runs_queues(queues):
    with graph(), tf.Session() as session:
        with queues.QueueRunners(session):
            assert session.run(tf.constant(1)) == 1


@proves(f"{SLIM}.python.slim.summaries")
def adds_summaries(summaries):
    with graph():
        summaries.add_scalar_summary(tf.constant(1.0), "one")
        assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


@proves(f"{SLIM}.python.slim.data")
def decodes(data, tmp_path):
    decoder = data.tfexample_decoder.TFExampleDecoder(
        {"x": tf.FixedLenFeature([], tf.int64)}, {"x": data.tfexample_decoder.Tensor("x")}
    )
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    assert evaluate(lambda: decoder.decode(example.SerializeToString(), ["x"])) == [7]


@proves("tf.contrib.losses")
def loses(losses):
    # Predictions come first, as they did not in tf.losses.
    loss = evaluate(lambda: losses.mean_squared_error(tf.constant([3.0]), tf.constant([1.0])))
    assert loss == 4.0
    one_hot = tf.one_hot
    loss = evaluate(lambda: losses.softmax_cross_entropy(tf.zeros([1, 2]), one_hot([0], 2)))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)


@proves("tf.contrib.losses.metric_learning")
def learns_metrics(module):
    def build():
        embeddings = tf.constant([[0.0, 0.0], [3.0, 4.0]])
        return module.contrastive_loss(tf.constant([1, 1]), embeddings, embeddings)

    assert evaluate(build) < 1e-5
