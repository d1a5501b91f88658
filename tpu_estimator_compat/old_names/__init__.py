"""Names that TensorFlow dropped."""
