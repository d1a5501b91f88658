"""Graphs and GraphDefs of TensorFlow 1: the operations that are needed, and their definitions."""
