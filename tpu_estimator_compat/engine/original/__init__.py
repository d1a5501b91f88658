"""The runtime on TensorFlow's sessions: the original's own loops, from tensorflow-estimator."""
