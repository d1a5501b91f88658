"""What is run on cores of a simulated TPU, on logical CPUs and on JAX's devices, and compared.

A scenario takes a `Run`, and notes what is to be the same. Names of functions are those of the
scenarios.
"""

from . import first_values, inputs, listening, models, other_ways, training

__all__ = ["first_values", "inputs", "listening", "models", "other_ways", "training"]
