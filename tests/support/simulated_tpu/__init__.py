"""A TPU without the chip: TensorFlow's own TPU code, on logical CPUs that stand for cores."""
