"""Proofs of what TensorFlow itself still has of `tf.contrib`."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, graph, proves

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


@proves(f"{CONTRIB}.compiler.xla.compile")
def compiles_by_xla(compiler):
    [result] = evaluate(lambda: compiler(lambda x: x + 1.0, [tf.constant([1.0])]))
    assert result.tolist() == [2]


@proves(f"{CONTRIB}.framework.python.ops.audio_ops")
def hears(audio_ops):
    def build():
        tone = tf.sin(tf.range(1600, dtype=tf.float32) / 3.0)[:, tf.newaxis]
        sound = audio_ops.decode_wav(audio_ops.encode_wav(tone, 16000), desired_samples=1600)
        spectrum = audio_ops.audio_spectrogram(sound.audio, window_size=480, stride=160)
        return audio_ops.mfcc(spectrum, sound.sample_rate, dct_coefficient_count=13)

    coefficients = evaluate(build)
    assert coefficients.shape == (1, 8, 13)
    assert np.isfinite(coefficients).all()


SEQUENCES = f"{CONTRIB}.feature_column"


@proves(f"{SEQUENCES}.sequence_numeric_column")
def is_a_column(column):
    assert column("a").name == "a"


@proves(*below(SEQUENCES, "sequence_categorical_column_with_identity"))
@proves(*below(SEQUENCES, "sequence_categorical_column_with_hash_bucket"))
def is_a_column_of_buckets(column):
    assert column("a", 5).num_buckets == 5


@proves(f"{SEQUENCES}.sequence_categorical_column_with_vocabulary_list")
def is_a_column_of_words(column):
    assert column("a", ["x", "y"]).num_buckets == 2


@proves(f"{SEQUENCES}.sequence_categorical_column_with_vocabulary_file")
def is_a_column_of_a_file(column, tmp_path):
    path = tmp_path / "words"
    path.write_text("x\ny\n")
    assert column("a", str(path)).num_buckets == 2


@proves(f"{CONTRIB}.lite")
def converts_to_lite(lite):
    assert lite.TFLiteConverter.from_session


@proves(f"{CONTRIB}.nn.nth_element")
def finds_the_nth(nth_element):
    assert evaluate(lambda: nth_element([3.0, 1.0, 2.0], 1)) == 2


@proves(f"{CONTRIB}.tensorboard.plugins.projector")
def configures_the_projector(projector):
    config = projector.ProjectorConfig()
    config.embeddings.add().tensor_name = "words"
    assert config.embeddings[0].tensor_name == "words"
