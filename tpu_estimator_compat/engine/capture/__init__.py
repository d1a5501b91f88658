"""Calls the user's functions in a graph of TensorFlow 1, as TensorFlow 1 would have done."""
