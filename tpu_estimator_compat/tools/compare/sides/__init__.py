"""The code in the process of a side: the script, and the recorder, which the script does not see.

All modules but `ours` import nothing of this package, and are Python 3.7: they also run in the
environment of the original, which has neither this package nor a later Python.
"""
