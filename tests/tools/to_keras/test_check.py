import numpy as np
import pytest

from tpu_estimator_compat.tools.to_keras.check import _bound, _compared, _copied, difference
from tpu_estimator_compat.tools.to_keras.graph import Bound, Weight
from tpu_estimator_compat.tools.to_keras.samples import Samples

INF = float("inf")


@pytest.mark.parametrize(
    ("found", "expected", "scale", "largest"),
    [
        ([0.5, 100.0], [0.5, 101.0], 1.0, 1 / 101),
        ([0.25], [0.5], 1.0, 0.25),
        ([0.25], [0.5], 0.1, 0.5),
        ([np.inf, np.nan], [np.inf, np.nan], 1.0, 0.0),
        ([[1.0]], [1.0], 1.0, INF),
        (None, [1.0], 1.0, INF),
        ([], [], 1.0, 0.0),
    ],
)
def test_difference_of_floats(found, expected, scale, largest):
    given = None if found is None else np.array(found, np.float32)
    measured = difference(given, np.array(expected, np.float32), scale)
    assert measured == pytest.approx(largest)


def test_nan_on_one_side_is_no_rounding():
    assert not difference(np.array([np.nan]), np.array([1.0])) <= 1e9
    assert not difference(np.array([1.0]), np.array([np.nan])) <= 1e9
    assert not difference(np.array([-np.inf]), np.array([np.inf])) <= 1e9


@pytest.mark.parametrize("values", [[3, 4], [b"a", b"b"], [True, False]])
def test_difference_of_what_is_not_rounded(values):
    assert difference(np.array(values), np.array(values)) == 0
    assert difference(np.array(values), np.array(values[::-1])) == 1


def test_a_gradient_has_the_order_of_its_weight_and_not_what_is_added_to_it():
    """As of an LSTM's bias, whose gates Keras has in another order, with 1 added to one."""
    weights = [Weight(name, (2,), "float32", True) for name in "ab"]
    bound = Bound(weights, lambda a, b: np.concatenate([b, a]), np.array([1, 1, 0, 0]))
    paths = {
        "cell.bias": bound,
        "kernel": Bound([weights[0]]),
        "other": Bound([Weight("c", (), "", True)]),
    }
    found = _bound(paths, {"a": np.array([1.0, 2]), "b": np.array([3.0, 4])})
    assert {path: list(array) for path, array in found.items()} == {
        "cell.bias": [3, 4, 1, 2],
        "kernel": [1, 2],
    }


def test_a_variable_that_the_model_has_twice_is_found():
    """Not one that is cut in two, of which each part is there once."""
    tied, cut = (Weight(name, (2, 3), "float32", True) for name in ("tied", "cut"))
    other = Weight("other", (3,), "float32", True)
    paths = {
        "embedding.embeddings": Bound([tied]),
        "output.kernel": Bound([tied], np.transpose),
        "first.kernel": Bound([cut], lambda array: array[:1]),
        "second.kernel": Bound([cut, other], lambda array, bias: np.stack([array[1], bias])),
    }
    assert _copied(paths) == ["tied"]


@pytest.mark.parametrize(
    ("gradients", "largest"),
    [
        ([[1.0, 0.0], [1.0, 2.0]], 0.0),  # a kink of ReLU that rounding crosses at one point
        ([[1.0, 1.9], [1.0, 1.9]], 0.05),
        ([[1.0, 2.0], [1.0, np.nan]], np.nan),
    ],
)
def test_a_gradient_is_right_where_it_is_right_at_one_point(gradients, largest):
    weights = {"kernel": Bound([Weight("w", (2,), "float32", True)])}
    samples = Samples([], [{}], [], losses={True: [(3.0, {"w": np.array([1.0, 2.0])})] * 2})
    losses = {True: [(3.0, {"kernel": np.array(each)}) for each in gradients]}
    loss, gradient = _compared(
        weights, samples, [], {"outputs": [{}], "metrics": {}, "losses": losses}, 1e-5
    )
    assert loss.agrees
    assert gradient.largest == pytest.approx(largest, nan_ok=True)
    assert gradient.agrees == (largest == 0.0)
