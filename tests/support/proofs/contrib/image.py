import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, graph, proves


@proves("tf.contrib.image")
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
