"""The runtime on JAX: its devices hold the variables and run the steps that TensorFlow captured.

The engine comes in by two modules, which import this room when a configuration asks for JAX, and
not before: `modes/runtimes.py` for the runner of a plan, `topology/jax_devices.py` for devices and
the processes that share them. JAX's profiles need no third: `profiler.py` goes out from here to
TensorFlow's profiler. The tools use `installation.py`, and preflight compiles by `lowering/` what
runs here. To read, begin with `runner.py`, which makes n steps, and follow them to `steps.py`,
`step.py` and `step_function.py`; then `lowering/`, from a replica's step to what XLA compiles, and
`processes/`, where several processes run together.
"""
