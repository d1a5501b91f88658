"""The code in the process of a side: runs the script, and records it unseen by the script.

All modules but `ours` import nothing of this package but each other and `keras_model/calls.py`, and
are written in Python 3.7: they also run in the original's environment, which may lack this package
and a later Python.
"""
