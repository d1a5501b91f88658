"""Which runtime is asked for, where a script does not say it."""

import os

RUNTIME_VARIABLE = "TPU_ESTIMATOR_COMPAT_RUNTIME"

TENSORFLOW, JAX, AUTO = RUNTIMES = ("tensorflow", "jax", "auto")


def runtime_in_environment() -> str:
    """The runtime that the environment asks for; TensorFlow where it does not."""
    return os.environ.get(RUNTIME_VARIABLE) or TENSORFLOW
