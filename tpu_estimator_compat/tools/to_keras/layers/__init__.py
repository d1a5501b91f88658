"""Recognizes Keras' layers and functions in a program.

`patterns` is the table: what operations they are made of. `building` and `images` check shapes and
make calls of them, and `recognizing` puts these into the program.
"""

from tpu_estimator_compat.tools.to_keras.layers.recognizing import recognize

__all__ = ["recognize"]
