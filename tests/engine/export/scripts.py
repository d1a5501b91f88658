"""Exports by processes of their own, which are killed or have switched something off."""

import subprocess
import sys

from support import TESTS

SCRIPT = """
import os, sys
import tensorflow.compat.v1 as tf
{before}
sys.path.insert(0, {here!r})
from engine.export import export_driver
export_driver.install_namespace("ours")
from engine.export import export_cases as cases
case = cases.CASES[{name!r}]
est = cases.make_estimator(case, {model_dir!r})
{action}
"""


def run_script(name, model_dir, before="", action=""):
    code = SCRIPT.format(
        here=str(TESTS), name=name, model_dir=model_dir, before=before, action=action
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
