"""Commands and what they do.

`commands/` has a module for each command of `python -m tpu_estimator_compat`: its arguments, what
it prints, its exit status. The folders beside it do the work of one command each, such as
`preflight/` and `compare/`; what several of them share is in `reports/`, which shows results, and
in `child_process.py`, which runs what may hang or die. Nothing comes in by this door but
`__main__`, and `estimator.preflight()`, which imports its tool when it is called. Begin to read at
`commands/scan.py`, which is the shortest way through arguments, work and report.
"""
