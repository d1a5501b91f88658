"""TensorFlow functions: their traces, executors and errors; how many steps a call makes."""
