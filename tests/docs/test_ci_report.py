"""`.ci/report.py`, which ends a run of `.ci/run`."""

import pathlib
import subprocess
import sys

REPORT = pathlib.Path(__file__).parents[2] / ".ci" / "report.py"

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_c" time="1.5"/>
<testcase classname="tests.a.test_b" name="test_d" time="0">{}</testcase>
</testsuite></testsuites>"""


def reported(folder, result):
    (folder / "stages.tsv").write_text("slow\t3\tok\n")
    (folder / "slow.xml").write_text(JUNIT.format(result))
    words = [sys.executable, str(REPORT), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_what_the_machine_could_not_run_comes_last(tmp_path):
    shown = reported(tmp_path, '<skipped message="no Python 3.13"/>')
    assert "## slow: 1 passed, 1 skipped" in shown
    assert shown.splitlines()[-1] == "| 1 | no Python 3.13 |"
    assert "## LEFT OUT" in shown


def test_nothing_was_left_out(tmp_path):
    assert "LEFT OUT" not in reported(tmp_path, "")
