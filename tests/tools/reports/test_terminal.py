import os
import pty
import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.tools.reports.terminal import Sheet, are_colors_shown, cell, grid

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


def test_a_file_gets_no_color():
    assert not are_colors_shown()
    sheet = Sheet(20)
    sheet.add("fits", style="green")
    assert str(sheet) == "fits"


def test_no_line_of_a_table_is_wider_than_the_sheet():
    sheet = Sheet(20)
    sheet.draw(grid([("name", "a word-that-is-longer-than-its-column"), ("x", "")]))
    lines = str(sheet).splitlines()
    assert max(map(len, lines)) <= 20
    assert [line.split()[0] for line in (lines[0], lines[-1])] == ["name", "x"]
    assert "".join("".join(lines[:-1]).split()) == "nameaword-that-is-longer-than-its-column"


def test_long_words_of_a_paragraph_stay_whole():
    sheet = Sheet(20)
    sheet.add("see /a/path/that/is/longer/than/the/sheet for more", "  - ", "    ")
    assert str(sheet).splitlines() == [
        "  - see",
        "    /a/path/that/is/longer/than/the/sheet",
        "    for more",
    ]


def test_text_of_users_is_neither_markup_nor_codes():
    sheet = Sheet(40, color=True)
    sheet.draw(grid([(cell("[red]x[/red]\x1b[2J", "green"), ":smile:")]))
    assert str(sheet) == "\x1b[32m[red]x[/red]?[2J\x1b[0m  :smile:"
