"""Runs a package's own test modules, and writes how each test ended.

`own_tests.py FILE MODULE ...` writes one JSON object: test id to "" if it passed, "skipped", or the
last line of its error.
"""

import importlib
import json
import sys
import unittest

from absl import flags


class Outcomes(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def addSuccess(self, test):
        self.found.setdefault(test.id(), "")

    def addSkip(self, test, reason):
        self.found[test.id()] = "skipped"

    def addError(self, test, err):
        self.found[test.id()] = f"{err[0].__name__}: {err[1]}".strip().splitlines()[0][:300]
        super().addError(test, err)
        sys.stderr.write(self.errors[-1][1])

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(test, err)


if __name__ == "__main__":
    path, *modules = sys.argv[1:]
    flags.FLAGS(sys.argv[:1])
    outcomes = Outcomes()
    for module in modules:
        imported = importlib.import_module(module)
        unittest.defaultTestLoader.loadTestsFromModule(imported).run(outcomes)
    with open(path, "w") as file:
        json.dump(outcomes.found, file, indent=1, sort_keys=True)
