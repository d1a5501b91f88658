import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, graph, proves

CONTRIB = "tf.contrib"
DISTRIBUTIONS = f"{CONTRIB}.distributions"


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
