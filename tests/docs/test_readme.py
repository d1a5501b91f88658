"""The README: its script fails without this package, runs with it; its figures are the guide's."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_script(tmp_path):
    [script] = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    [console] = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    plain, fails, command, runs = console.splitlines()
    (tmp_path / "train.py").write_text(script)

    def last_line(line):
        words = line.removeprefix("$ python ").split()
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout.splitlines()[-1]

    assert last_line(plain) == (1, fails)
    status, printed = last_line(command)
    assert status == 0
    words, value = runs.split("[[")
    assert printed.startswith(words)
    found = float(printed.removeprefix(words).strip("[]"))
    assert found == pytest.approx(float(value.strip("]")), rel=1e-4)


def test_two_screens():
    assert len(TEXT.splitlines()) <= 140


def test_speeds_are_those_of_the_guide():
    page = (ROOT / "migration_guide" / "performance.md").read_text()
    [measured] = re.findall(r"^\| `original` \| (.*) \|$", page, re.MULTILINE)
    table = TEXT.partition("| model | times the original's |\n|---|---|\n")[2].partition("\n\n")[0]
    assert [row.split(" | ")[1].strip(" |") for row in table.splitlines()] == measured.split(" | ")
    [first] = re.findall(r"first step takes ([\d.]+ to [\d.]+) of the original's time", TEXT)
    [row] = re.findall(r"^\| time to the first step .*$", page, re.MULTILINE)
    ratios = sorted(re.findall(r"\d\.\d+", row))
    assert first == f"{ratios[0]} to {ratios[-1]}"
