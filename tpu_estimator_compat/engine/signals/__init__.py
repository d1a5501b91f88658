"""Signals while the main thread waits for TensorFlow, and the end of the process."""
