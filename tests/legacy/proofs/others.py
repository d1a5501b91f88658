"""The rest of `tf.contrib`."""

import itertools

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from proofs import below, evaluate, graph, proves
from tpu_estimator_compat import estimator as estimators

CONTRIB = "tf.contrib"


@proves(f"{CONTRIB}.autograph")
def converts(autograph):
    def function(x):
        return x + 1 if x > 0 else x - 1

    assert evaluate(lambda: autograph.to_graph(function)(tf.constant(1))) == 2


@proves(f"{CONTRIB}.autograph.do_not_convert")
def leaves_alone(do_not_convert):
    assert do_not_convert(lambda x: x + 1)(1) == 2


@proves(f"{CONTRIB}.eager.GradientTape")
def records(tape_class):
    x = tf2.constant(3.0)
    with tape_class() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


@proves(f"{CONTRIB}.eager.custom_gradient")
def has_own_gradients(custom_gradient):
    @custom_gradient
    def function(x):
        return x, lambda dy: dy * 7.0

    assert evaluate(lambda: tf.gradients(function(x := tf.constant(1.0)), x)) == [7.0]


@proves(f"{CONTRIB}.eager.make_template")
def shares_variables(make_template):
    def build():
        template = make_template("t", lambda: tf.get_variable("v", initializer=2.0))
        return template() + template()

    assert evaluate(build) == 4.0


@proves(f"{CONTRIB}.eager.TensorSpec")
def describes_tensors(spec):
    assert spec([2], tf.float32).is_compatible_with(tf.zeros([2]))


@proves(f"{CONTRIB}.compiler.jit.experimental_jit_scope")
def compiles(jit_scope):
    def build():
        with jit_scope():
            return tf.constant(1.0) + tf.constant(2.0)

    with graph():
        assert build().op.get_attr("_XlaCompile") is True


@proves(f"{CONTRIB}.eager.Variable")
def makes_variables(variable):
    assert variable(3.0).numpy() == 3.0


@proves(f"{CONTRIB}.eager.defun")
def makes_functions(defun):
    assert defun(lambda x: x + 1)(tf.constant(1)).numpy() == 2


@proves(f"{CONTRIB}.eager.enable_eager_execution")
def goes_on_eagerly(enable):
    enable()
    assert tf.executing_eagerly()


@proves(f"{CONTRIB}.eager.executing_eagerly")
def knows_eager(executing_eagerly):
    assert executing_eagerly()
    with graph():
        assert not executing_eagerly()


@proves(f"{CONTRIB}.eager.num_gpus")
def counts_gpus(num_gpus):
    assert num_gpus() == len(tf2.config.list_physical_devices("GPU"))


@proves(f"{CONTRIB}.eager.py_func")
def calls_python(py_func):
    assert evaluate(lambda: py_func(lambda x: x * 2, [tf.constant(2)], tf.int32)) == 4


@proves(f"{CONTRIB}.hooks.ProfilerHook")
def profiles(hook, tmp_path):
    with graph():
        step = tf.train.create_global_step()
        profiler = hook(save_steps=1, output_dir=str(tmp_path))
        increase = step.assign_add(1)
        with tf.train.MonitoredSession(hooks=[profiler]) as session:
            for _ in range(3):
                session.run(increase)
    assert list(tmp_path.glob("timeline-*.json"))


@proves(f"{CONTRIB}.learn.ModeKeys")
def has_modes(modes):
    assert (modes.TRAIN, modes.EVAL) == ("train", "eval")


@proves(f"{CONTRIB}.learn.NanLossDuringTrainingError")
def has_the_error(error):
    assert "NaN loss during training" in str(error())


def trained(folder):
    def model_fn(features, labels, mode):
        del labels
        weight = tf.get_variable("w", initializer=3.0)
        loss = weight * 0.0
        step = tf.train.get_global_step()
        train_op = step.assign_add(1)
        predictions = {"y": features["x"] * weight}
        return estimators.EstimatorSpec(mode, predictions, loss, train_op)

    estimator = estimators.Estimator(model_fn, str(folder))
    estimator.train(lambda: tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0])), steps=1)
    return estimator


def receiver():
    x = tf.placeholder(tf.float32, [None], "x")
    return estimators.export.ServingInputReceiver({"x": x}, {"x": x})


@proves(f"{CONTRIB}.predictor.from_saved_model")
def predicts(from_saved_model, tmp_path):
    path = trained(tmp_path / "model").export_saved_model(str(tmp_path / "export"), receiver)
    predictor = from_saved_model(path.decode())
    assert predictor({"x": [1.0, 2.0]})["y"].tolist() == [3.0, 6.0]
    assert list(predictor.feed_tensors) == ["x"]
    with pytest.raises(ValueError, match="unexpected keys"):
        predictor({"z": [1.0]})
    with pytest.raises(ValueError, match="Available signatures"):
        from_saved_model(path.decode(), "missing")
    with pytest.raises(ValueError, match="at most one"):
        from_saved_model(path.decode(), "a", input_names={}, output_names={})
    named = from_saved_model(path.decode(), input_names={"in": "x:0"}, output_names={"w": "w:0"})
    assert list(named.fetch_tensors) == ["w"]


@proves(f"{CONTRIB}.predictor.from_estimator")
def predicts_from_estimators(from_estimator, tmp_path):
    predictor = from_estimator(trained(tmp_path), receiver)
    assert predictor({"x": [1.0, 2.0]})["y"].tolist() == [3.0, 6.0]
    assert predictor.session.graph is predictor.graph


@proves(f"{CONTRIB}.quantization.quantize_v2")
def quantizes(quantize):
    result = evaluate(lambda: quantize([0.0, 1.0], 0.0, 1.0, tf.quint8))
    assert result.output.tolist() == [0, 255]


@proves(f"{CONTRIB}.quantization.dequantize")
def dequantizes(dequantize):
    def build():
        quantized = tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, tf.quint8)
        return dequantize(quantized.output, 0.0, 1.0)

    np.testing.assert_allclose(evaluate(build), [0, 1], atol=0.01)


@proves(f"{CONTRIB}.quantization.quantized_concat")
def concatenates(concat):
    def build():
        quantized = tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, tf.quint8)
        values, low, high = [quantized.output] * 2, [0.0] * 2, [1.0] * 2
        return concat(0, values, low, high)

    assert evaluate(build).output.shape == (4,)


@proves(f"{CONTRIB}.signal")
def frames(signal):
    assert evaluate(lambda: signal.frame(tf.range(4), 2, 2)).tolist() == [[0, 1], [2, 3]]


@proves(f"{CONTRIB}.staging.StagingArea")
def stages(area):
    def build():
        staging = area([tf.float32])
        with tf.control_dependencies([staging.put([tf.constant(2.0)])]):
            return staging.get()

    assert evaluate(build) == [2.0]


@proves(
    *below(
        f"{CONTRIB}.stateless",
        "stateless_random_normal stateless_random_truncated_normal stateless_random_uniform "
        "stateless_truncated_normal",
    )
)
def draws(draw):
    first, second = (evaluate(lambda: draw([3], seed=[1, 2])) for _ in range(2))
    assert first.tolist() == second.tolist()


@proves(f"{CONTRIB}.stateless.stateless_multinomial")
def draws_classes(draw):
    assert evaluate(lambda: draw(tf.constant([[0.0, 50.0]]), 2, seed=[1, 2])).tolist() == [[1, 1]]


UTIL = f"{CONTRIB}.util"


@proves(f"{UTIL}.constant_value")
def knows_constants(constant_value):
    with graph():
        assert constant_value(tf.constant(3)) == 3


@proves(f"{UTIL}.make_tensor_proto")
def makes_protos(make_tensor_proto):
    assert make_tensor_proto([1, 2]).tensor_shape.dim[0].size == 2


@proves(f"{UTIL}.make_ndarray")
def makes_arrays(make_ndarray):
    assert make_ndarray(tf.make_tensor_proto([1, 2])).tolist() == [1, 2]


@proves(f"{UTIL}.ops_used_by_graph_def")
def lists_ops(ops_used):
    with graph() as new:
        tf.constant(1)
        assert ops_used(new.as_graph_def()) == ["Const"]


@proves(f"{UTIL}.stripped_op_list_for_graph")
def describes_ops(stripped):
    with graph() as new:
        tf.constant(1)
        assert [op.name for op in stripped(new.as_graph_def()).op] == ["Const"]


@proves(*below(f"{CONTRIB}.crf", ". python.ops.crf"))
def has_random_fields(crf):
    random = np.random.RandomState(0)
    unary = random.randn(2, 4, 3).astype(np.float32)
    transitions = random.randn(3, 3).astype(np.float32)
    tags = np.array([[0, 1, 2, 1], [2, 2, 0, 0]], np.int32)
    lengths = np.array([4, 2], np.int32)

    def score(example, path):
        steps = sum(transitions[a, b] for a, b in itertools.pairwise(path))
        return sum(unary[example, time, tag] for time, tag in enumerate(path)) + steps

    def paths(length):
        return [tuple(path) for path in np.ndindex(*[3] * length)]

    def build():
        likelihood, _ = crf.crf_log_likelihood(
            tf.constant(unary), tf.constant(tags), tf.constant(lengths), tf.constant(transitions)
        )
        bitmap = tf.one_hot(tags, 3, on_value=True, off_value=False)
        allowed = crf.crf_multitag_sequence_score(
            tf.constant(unary), bitmap, tf.constant(lengths), tf.constant(transitions)
        )
        return likelihood, allowed, crf.crf_decode(unary, transitions, lengths)

    likelihood, allowed, (decoded, best) = evaluate(build)
    for i, length in enumerate(lengths):
        scores = {path: score(i, path) for path in paths(length)}
        own = scores[tuple(tags[i, :length])]
        norm = np.log(sum(np.exp(value) for value in scores.values()))
        np.testing.assert_allclose(likelihood[i], own - norm, rtol=1e-4)
        np.testing.assert_allclose(allowed[i], own, rtol=1e-4)
        top = max(scores, key=lambda path: scores[path])
        assert decoded[i].tolist() == [*top, *[0] * (4 - length)]
        np.testing.assert_allclose(best[i], scores[top], rtol=1e-5)
        path, value = crf.viterbi_decode(unary[i, :length], transitions)
        assert tuple(path) == top
        np.testing.assert_allclose(value, scores[top], rtol=1e-5)
    with graph():
        crf.crf_log_likelihood(tf.constant(unary), tf.constant(tags), tf.constant(lengths))
        assert [v.op.name for v in tf.global_variables()] == ["transitions"]


@proves(*below(f"{CONTRIB}.image", ". python.ops.image_ops"))
def moves_pixels(image):
    pixels = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    turned = evaluate(lambda: image.rotate(tf.constant(pixels), np.pi / 2))
    np.testing.assert_allclose(turned, np.rot90(pixels), atol=1e-4)
    shifted = evaluate(lambda: image.translate(tf.constant(pixels[None, :, :, None]), [1, 0]))
    assert shifted[0, :, :, 0].tolist() == [[0, 0, 1], [0, 3, 4], [0, 6, 7]]

    def build():
        there = image.translations_to_projective_transforms([[1.0, 2.0]])
        back = image.translations_to_projective_transforms([[-1.0, -2.0]])
        return image.compose_transforms(there, back)

    np.testing.assert_allclose(evaluate(build), [[1, 0, 0, 0, 1, 0, 0, 0]], atol=1e-6)
    with graph(), pytest.raises(TypeError, match="rank between 2 and 4"):
        image.rotate(tf.zeros([3]), 1.0)
