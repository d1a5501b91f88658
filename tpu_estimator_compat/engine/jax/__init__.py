"""The runtime on JAX: its devices hold the variables and run the steps that TensorFlow captured.

The engine imports this room only when a configuration asks for JAX, by two modules:
`modes/runtimes.py` for the runner of a plan, `topology/chosen_topology.py` for the replicas.
The tools use `installation.py`, and preflight compiles the same steps, by `lowering/`. To read,
begin with `runner.py`, which makes n steps, and follow it to `steps.py`, `step.py` and
`step_function.py`; then read `lowering/`, from a replica's step to the program that XLA compiles,
and `processes/`, where several processes run together.
"""
