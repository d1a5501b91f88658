"""The engine: from a `model_fn` and an input to steps, and the loops and files around them.

Other doors import it, mainly `estimator` and `keras_model`; users do not. The data pass through
its rooms in this order: `topology`, `inputs`, `capture` (with `graph`, `refs`, `state`), `modes`,
`step`, `loop` (with `runtime`), `session`, `hooks`, `checkpoint`, `export`; `jax` is another way
to run steps. `.importlinter` says which rooms import which. Begin with `modes/model_modes.py`: what
a model owns; then `step/plan.py`: the value that says what a step computes.
"""
