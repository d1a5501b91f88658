"""The execution of functions: eager contexts, executors, other workers, JAX's installation."""
