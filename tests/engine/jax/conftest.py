from support.jax_cpus import own_cache  # noqa: F401 (a fixture)
