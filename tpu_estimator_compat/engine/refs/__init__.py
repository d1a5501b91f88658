"""Ref variables of TensorFlow 1: a captured graph that has them, as one on resource variables."""
