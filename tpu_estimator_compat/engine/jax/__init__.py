"""The runtime on JAX: its devices hold the variables and run the steps that TensorFlow captured."""
