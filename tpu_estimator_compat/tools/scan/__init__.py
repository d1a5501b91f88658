"""Finds the uses of dead names in source files, without running them or importing TensorFlow."""
