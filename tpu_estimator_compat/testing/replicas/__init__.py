"""Processes with a number of replicas of their own, for marked tests and for `with_replicas`.

Python's forkserver, which has imported TensorFlow, forks one for each. Begin with `processes.py`.
"""
