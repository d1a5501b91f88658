"""The processes that run steps on JAX's devices together: they join, agree and run."""
