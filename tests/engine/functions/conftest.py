"""JAX's devices, for the whole folder; an installation without JAX leaves out what is about it."""

import importlib.util

if importlib.util.find_spec("jax") is None:
    collect_ignore_glob = ["test_jax_*.py"]
else:
    from support.jax_cpus import own_cache  # noqa: F401 (a fixture)
