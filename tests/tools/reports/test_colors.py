"""Colors in a terminal."""

import os
import pty
import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.tools.reports import colors

COMMANDS = {
    "scan": (["scan", "old.py"], "\x1b[32mworks", "\x1b[31mrefused"),
    "names": (["names", "tf.contrib.layers.fully_connected"], "\x1b[32mworks"),
}
SCRIPT = "import tensorflow as tf\ntf.contrib.tpu.TPUConfig()\ntf.estimator.BoostedTreesRegressor\n"


def in_terminal(words, cwd, **variables):
    """The text that a command writes to a terminal."""
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "tpu_estimator_compat", *words]
    environment = {**os.environ, "TERM": "xterm", **variables}
    done = subprocess.Popen(command, cwd=cwd, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    text = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # the other side is closed
            part = b""
        if not part:
            break
        text += part
    os.close(reader)
    done.wait(60)
    return text.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_color_in_a_terminal_alone(name, tmp_path):
    (tmp_path / "old.py").write_text(SCRIPT)
    words, *colored = COMMANDS[name]
    shown = in_terminal(words, tmp_path)
    assert all(text in shown for text in colored), shown
    plain = in_terminal(words, tmp_path, NO_COLOR="1")
    assert plain == re.sub(r"\x1b\[\d+m", "", shown)


def test_a_file_gets_no_color(capsys):
    assert not colors.are_shown()
    assert colors.painted("fits", "", on=True) == "fits"
