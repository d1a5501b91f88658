import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, graph, proves


@proves("tf.contrib.crf")
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
