"""Drawn models become Keras models that are right, or are refused by name."""

import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).with_name("leading_out.py")
OFTEN = (29, 30, 55, 58, 106)
SEEDS = [
    pytest.param(seed, marks=pytest.mark.slow if seed in OFTEN else pytest.mark.full)
    for seed in (*OFTEN, 6, 7, 8, 9, 32, 37)
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_model_is_led_out(seed, forks, tmp_path):
    done = forks.run(SCRIPT, str(seed), cwd=tmp_path)
    assert done.stdout.splitlines()[-1].startswith(
        (f"{seed} equal", f"{seed} has no form in Keras: ")
    ), done.stdout + done.stderr[-3000:]
