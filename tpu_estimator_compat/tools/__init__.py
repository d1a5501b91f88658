"""Commands and what they do.

`commands/` has a module for each command of `python -m tpu_estimator_compat`: its arguments, its
output, its exit status. Each folder beside it does the work of one command, such as `preflight/`
and `compare/`; several of them share `reports/`, which shows results, and `child_process.py`, which
runs code that may hang or die. Only `__main__` imports this door, and `estimator.preflight()`,
which imports its tool when it is called. Begin with `commands/scan.py`, the shortest way through
arguments, work and report.
"""
