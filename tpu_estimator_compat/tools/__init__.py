"""The commands of `python -m tpu_estimator_compat`, and the tools that do their work.

`commands/` has a module for each command: its arguments, its output, its exit status. Longer
commands have a folder beside it, such as `preflight/` and `compare/`. Several of them share
`reports/`, which shows results, and `child_process.py`, which runs code that may hang or die. Of
the other packages, only `__main__`, `testing` and `estimator.preflight()` import this one.
Begin with `commands/scan.py`, the shortest way through arguments, work and report.
"""
