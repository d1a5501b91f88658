"""How TensorFlow runs what we build: eager contexts, executors, other workers."""
