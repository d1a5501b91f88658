"""Eight CPU devices for JAX, of which a test takes the first n by `TPUConfig(num_shards=n)`."""

import jax

jax.config.update("jax_num_cpu_devices", 8)
