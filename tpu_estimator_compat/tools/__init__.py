"""The commands of `python -m tpu_estimator_compat`, and the tools that do their work.

`commands/` has a module for each command: its arguments, its output, its exit status. Each folder
beside it does the work of one command, such as `preflight/` and `compare/`. Several of them share
`reports/`, which shows results, and `child_process.py`, which runs code that may hang or die. Only
`__main__` and `testing` import this door, and `estimator.preflight()`, when it is called.
Begin with `commands/scan.py`, the shortest way through arguments, work and report.
"""
