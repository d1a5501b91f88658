import pathlib
import re
import subprocess
import sys

import pytest
from matplotlib import image

SCRIPT = pathlib.Path(__file__).parents[2].joinpath("migration_guide", "examples", "clicks.py")


@pytest.mark.full
def test_it_comes_near_the_best_possible_and_plots(tmp_path):
    flags = [f"--model_dir={tmp_path / 'model'}", f"--output_dir={tmp_path / 'out'}"]
    command = [sys.executable, str(SCRIPT), *flags, "--evaluations=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    [best] = map(float, re.findall(r"best possible AUC (\S+)", done.stdout))
    [found] = map(float, re.findall(r"^AUC (\S+) of", done.stdout, re.MULTILINE))
    # 0.822 of 0.839 was seen.
    assert 0.8 < best < 0.9
    assert best - 0.03 < found < best
    assert re.findall(r"^step (\d+)", done.stdout, re.MULTILINE) == ["500", "1000"]
    plot = image.imread(tmp_path / "out" / "clicks.png")
    assert plot.shape[1] > plot.shape[0] > 300
    assert plot.std() > 0.05
