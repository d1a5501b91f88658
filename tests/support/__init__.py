"""What the tests of several folders share. No test is in here, and no test imports another."""

import pathlib

TESTS = pathlib.Path(__file__).parents[1]
"""The folder of all tests; scripts in processes of their own find this package there."""
