"""Messages of TensorFlow's errors, cut to their words."""

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.functions import op_errors

BEFORE = "Graph execution error:\n\nDetected at node a/B defined at (most recent call last):\n"
BEFORE += "<stack traces unavailable>\n"
CASES = {
    BEFORE + "/x; File too large\n\t [[{{node a/B}}]] [Op:__inference_1]": "/x; File too large",
    "/x is not a directory": "/x is not a directory",
    "two lines\nof words.": "two lines\nof words",
}


@pytest.mark.parametrize("message", CASES)
def test_words_of_an_error(message):
    assert op_errors.words(tf.errors.UnknownError(None, None, message)) == CASES[message]


def test_an_error_of_a_function_has_but_its_words():
    @tf.function
    def fails():
        return tf.io.read_file("/none")

    with pytest.raises(tf.errors.OpError) as caught:
        fails()
    words = op_errors.words(caught.value)
    assert words.startswith("/none; No such file")
    assert "{{node" not in words
    assert "Graph execution error" not in words
    assert "[Op:" not in words
