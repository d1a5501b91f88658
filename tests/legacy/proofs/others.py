"""The rest of `tf.contrib`."""

import importlib.util
import itertools

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators

from ..proofs import below, evaluate, graph, proves

CONTRIB = "tf.contrib"


@proves(f"{CONTRIB}.autograph")
def converts(autograph):
    def function(x):
        return x + 1 if x > 0 else x - 1

    assert evaluate(lambda: autograph.to_graph(function)(tf.constant(1))) == 2


@proves(f"{CONTRIB}.autograph.do_not_convert")
def leaves_alone(do_not_convert):
    assert do_not_convert(lambda x: x + 1)(1) == 2


@proves(f"{CONTRIB}.gan")
def is_a_package_of_its_own(gan):
    """With the package: `tests/legacy/test_gan.py`, and `tests/clients/test_gan.py`."""
    if importlib.util.find_spec("tensorflow_gan") is None:
        with pytest.raises(ImportError, match="Install tensorflow-gan"):
            _ = gan.estimator
    else:
        assert gan.estimator.GANEstimator


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


@proves(f"{CONTRIB}.predictor.predictor_factories")
def has_factories(module, tmp_path):
    predicts(module.from_saved_model, tmp_path)


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


@proves(*below(f"{CONTRIB}.image", ". python.ops.image_ops"))
def pairs_the_closest(image):
    distances = np.array([[0.9, 0.2, 0.3], [0.1, 0.4, 0.8]], np.float32)

    def pairs(*arguments, **options):
        found = evaluate(lambda: image.bipartite_match(distances, *arguments, **options))
        return [part.tolist() for part in found]

    assert pairs(-1) == [[1, 0], [1, 0, -1]]
    assert pairs([1]) == [[1, -1], [-1, 0, -1]]  # the second row takes no part
    assert pairs(2, top_k=1) == [[-1, 0], [1, -1, -1]]
    with graph():
        of_rows, of_columns = image.bipartite_match(tf.placeholder(tf.float32, [None, 3]), -1)
    assert (of_rows.shape.as_list(), of_columns.shape.as_list()) == ([None], [3])


@proves(f"{CONTRIB}.compiler.xla.compile")
def compiles_by_xla(compiler):
    [result] = evaluate(lambda: compiler(lambda x: x + 1.0, [tf.constant([1.0])]))
    assert result.tolist() == [2]


DISTRIBUTIONS = f"{CONTRIB}.distributions"


@proves(f"{DISTRIBUTIONS}.Normal", f"{DISTRIBUTIONS}.Laplace", f"{DISTRIBUTIONS}.Uniform")
def is_of_location_and_scale(distribution):
    assert evaluate(lambda: distribution([0.0], [1.0]).sample(3, seed=1)).shape == (3, 1)


@proves(*below(DISTRIBUTIONS, "Exponential Bernoulli"))
def is_of_one_parameter(distribution):
    means = {"Exponential": 1 / 2, "Bernoulli": 1 / (1 + np.exp(-2))}  # of a rate; of a logit
    mean = evaluate(lambda: distribution(2.0).mean())
    np.testing.assert_allclose(mean, means[distribution.__name__], rtol=1e-6)


@proves(*below(DISTRIBUTIONS, "Beta Gamma"))
def is_of_two_parameters(distribution):
    assert evaluate(lambda: distribution(2.0, 2.0).mean()) in (0.5, 1.0)


@proves(f"{DISTRIBUTIONS}.StudentT")
def has_tails(distribution):
    assert evaluate(lambda: distribution(3.0, 1.0, 2.0).mean()) == 1


@proves(*below(DISTRIBUTIONS, "Categorical Dirichlet"))
def is_of_a_vector(distribution):
    assert evaluate(lambda: distribution([1.0, 1.0]).entropy()) >= 0


@proves(*below(DISTRIBUTIONS, "DirichletMultinomial Multinomial"))
def counts_draws(distribution):
    assert evaluate(lambda: distribution(4.0, [1.0, 1.0]).mean()).sum() == 4


@proves(
    f"{DISTRIBUTIONS}.MultivariateNormalDiag",
    f"{DISTRIBUTIONS}.MultivariateNormalDiagWithSoftplusScale",
)
def is_normal_in_every_direction(distribution):
    soft = distribution.__name__.endswith("Scale")
    loc, deviations, x = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0]), [3.0, -1.0]
    given = np.log(np.expm1(deviations)) if soft else deviations

    def build():
        normal = distribution(loc, given)
        other = distribution(loc + 1.0, 3.0 * np.ones(2))
        statistics = [normal.mean(), normal.stddev(), normal.entropy(), normal.covariance()]
        likely = normal.log_prob(tf.constant(x, tf.float64))
        same = normal.kl_divergence(normal)
        return normal.sample(4000, seed=1), likely, statistics, normal.kl_divergence(other), same

    samples, likely, (mean, stddev, entropy, covariance), divergence, same = evaluate(build)
    assert samples.shape == (4000, 2, 2)
    np.testing.assert_allclose(samples.mean(0), loc, atol=0.2)
    np.testing.assert_allclose(samples.std(0), stddev, rtol=0.1)
    expected = -(((x - loc) / deviations) ** 2) / 2 - np.log(deviations) - np.log(2 * np.pi) / 2
    np.testing.assert_allclose(likely, expected.sum(-1))
    np.testing.assert_allclose(mean, loc)
    np.testing.assert_allclose(entropy, np.log(2) + 1 + np.log(2 * np.pi))
    np.testing.assert_allclose(covariance, [np.diag(deviations**2)] * 2)
    np.testing.assert_allclose(same, 0.0, atol=1e-12)
    if not soft:
        between = np.log(3 / deviations) + (deviations**2 + 1) / 18 - 0.5
        np.testing.assert_allclose(divergence, [between.sum()] * 2)


@proves(f"{DISTRIBUTIONS}.MultivariateNormalDiag")
def takes_one_deviation_for_all(distribution):
    def build():
        alone = distribution([0.0, 1.0], scale_identity_multiplier=[2.0, 3.0])
        added = distribution(scale_diag=[1.0, 2.0], scale_identity_multiplier=0.5)
        standard = distribution([5.0, 6.0])
        return [d.stddev() + 0.0 * d.sample() for d in (alone, added, standard)]

    alone, added, standard = evaluate(build)
    np.testing.assert_allclose(alone, [[2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_allclose(added, [1.5, 2.5])
    np.testing.assert_allclose(standard, [1.0, 1.0])
    with graph(), pytest.raises(ValueError, match="needs loc or scale_diag"):
        distribution(scale_identity_multiplier=1.0)


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


@proves(f"{DISTRIBUTIONS}.kl_divergence")
def diverges(divergence):
    def build():
        return divergence(tf.distributions.Normal(0.0, 1.0), tf.distributions.Normal(1.0, 1.0))

    assert evaluate(build) == 0.5


@proves(*below(DISTRIBUTIONS, "Distribution RegisterKL ReparameterizationType"))
def is_for_distributions_of_ones_own(thing):
    assert thing is getattr(tf.distributions, thing.__name__)


@proves(*below(DISTRIBUTIONS, "FULLY_REPARAMETERIZED NOT_REPARAMETERIZED"))
def says_how_samples_are_made(kind):
    assert isinstance(kind, tf.distributions.ReparameterizationType)


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


@proves(f"{SEQUENCES}.sequence_input_layer")
def joins_sequences(layer):
    column = tf.feature_column.sequence_categorical_column_with_identity("words", 3)

    def build():
        ids = tf.constant([2, 0, 1], tf.int64)
        words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ids, [2, 2])
        return layer({"words": words}, [tf.feature_column.indicator_column(column)])

    values, lengths = evaluate(build)
    assert values.tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]]]
    assert lengths.tolist() == [2, 1]


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


@proves(
    *below(f"{CONTRIB}.learn.datasets", ". base mnist"),
    *below(f"{CONTRIB}.learn.python.learn.datasets", ". base mnist"),
    "tf.examples.tutorials.mnist.input_data",
)
def reads_tables(module, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,a\n3,4,5\n")
    assert module.load_csv_with_header(str(path), np.int32, np.float32).target.tolist() == [5]
    assert module.read_data_sets(str(tmp_path), fake_data=True).train.num_examples == 10000


LEARN = f"{CONTRIB}.learn"


@proves(f"{LEARN}.Experiment")
def is_an_experiment(experiment, tmp_path):
    def input_fn():
        return tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

    assert experiment(trained(tmp_path), input_fn, input_fn).test()["global_step"] == 2


@proves(f"{LEARN}.learn_runner", *below(f"{LEARN}.python.learn", "learn_runner experiment"))
def runs_an_experiment(module, tmp_path):
    def experiment_fn(output_dir):
        return module.Experiment(trained(output_dir), list, list, train_steps=1)

    assert module.run(experiment_fn, str(tmp_path), schedule="train").model_dir == str(tmp_path)


@proves(
    *below(LEARN, "ExportStrategy make_export_strategy"),
    *below(f"{LEARN}.python.learn", "export_strategy utils.saved_model_export_utils"),
    f"{LEARN}.utils.saved_model_export_utils",
)
def exports(module):
    strategy = getattr(module, "make_export_strategy", module)
    made = strategy("mine", list) if strategy.__name__ == "ExportStrategy" else strategy(list)
    assert made.name in ("mine", "Servo")


@proves("tf.contrib.tfprof.model_analyzer")
def analyses_models(module, tmp_path):
    path = tmp_path / "found"
    options = {**module.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "output": f"file:outfile={path}"}
    with graph() as new:
        tf.get_variable("weights", [3, 4], initializer=tf.zeros_initializer())
        found = module.print_model_analysis(new, tfprof_options=options)
        tf.matmul(tf.ones([2, 3]), tf.ones([3, 4]))
        costs = module.print_model_analysis(new, tfprof_options=module.FLOAT_OPS_OPTIONS)
    assert found.total_parameters == 12
    assert costs.total_float_ops == 2 * 2 * 3 * 4
    assert "weights (3x4, 12/12 params)" in path.read_text()


@proves(f"{LEARN}.preprocessing")
@proves(*below(f"{LEARN}.python.learn.preprocessing", ". text categorical_vocabulary"))
def makes_ids_of_words(module):
    processor = module.VocabularyProcessor(3)
    documents = ["the cat", "the dog sat down"]
    assert np.array_equal(list(processor.fit_transform(documents)), [[1, 2, 0], [1, 3, 4]])
    assert list(module.tokenizer(["It's TPUEstimator"])) == [["It's", "TPU", "Estimator"]]
