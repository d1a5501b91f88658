"""The processes that run steps on JAX's devices together: how they join, agree and run."""
