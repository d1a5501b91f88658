"""Legacy programs, drawn from seeds; TensorFlow 2.15 runs this code too."""
