"""The harness of all comparisons: sides run scenarios of a suite, and what came of it is compared.

A suite is a folder of the tests, with a module `setting` that gives scenarios their surroundings. A
side, the original or this package with settings of its own, is a live process that has imported
TensorFlow, and forks others (`running`); these run scenarios one after another (`driver`) and note
what they returned, raised, called, logged and left behind (`observing`). `comparing` finds
differences of two such observations.
"""
