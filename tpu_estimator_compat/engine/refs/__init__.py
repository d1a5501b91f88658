"""Ref variables of TensorFlow 1: converts a captured graph to one on resource variables."""
