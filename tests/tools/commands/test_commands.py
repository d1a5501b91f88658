import re
import shlex

import pytest

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.commands import COMMANDS

EXAMPLES = [
    pytest.param(command, example, id=example)
    for command in COMMANDS
    for example in re.findall(r"^    python -m tpu_estimator_compat (.*)$", command.__doc__, re.M)
]


def test_each_command_has_an_example():
    assert {example.values[0] for example in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("command", "example"), EXAMPLES)
def test_an_example(command, example, monkeypatch):
    monkeypatch.setattr(command, "run", lambda arguments: 0)
    assert main(shlex.split(example)) == 0


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_the_help_shows_it(command, capsys):
    with pytest.raises(SystemExit):
        main([command.NAME, "--help"])
    assert f"python -m tpu_estimator_compat {command.NAME}" in capsys.readouterr().out
