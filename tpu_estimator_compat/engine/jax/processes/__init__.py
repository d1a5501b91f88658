"""Several processes that run steps on JAX's devices together: joining, agreeing, running."""
