"""The engine: from a `model_fn` and an input to steps, and the loops and files around them.

Public doors come in, `estimator` and `keras_model` above all; users do not. Its rooms stand in
the order of the data: `topology`, `inputs`, `capture` (with `graph` and `state`), `modes`,
`step`, `loop` (with `runtime`), `session`, `hooks`, `checkpoint`, `export`; `jax` is another way
to run steps. Lower rooms never import higher ones (`.importlinter`). Begin with
`modes/model_modes.py`: what a model owns; then `step/plan.py`: the value that says what a step
computes.
"""
