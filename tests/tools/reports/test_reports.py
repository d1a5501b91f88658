import os
import pty
import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.markup import Html, element
from tpu_estimator_compat.tools.reports.sources import place, printable
from tpu_estimator_compat.tools.reports.terminal import Sheet, are_colors_shown, cell, grid

COMMANDS = {
    "scan": (["scan", "old.py"], "\x1b[32mworks", "\x1b[31mrefused"),
    "names": (["names", "tf.contrib.layers.fully_connected"], "\x1b[32mworks"),
}
SCRIPT = "import tensorflow as tf\ntf.contrib.tpu.TPUConfig()\ntf.estimator.BoostedTreesRegressor\n"


def in_terminal(words, cwd, **variables):
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


def test_text_is_escaped_and_markup_is_not():
    inner = element("b", "1 < 2")
    assert element("p", inner, "&", title='"') == ('<p title="&quot;"><b>1 &lt; 2</b>&amp;</p>')
    assert isinstance(inner, Html)


def test_files_below_the_working_directory_are_named_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert place(SourceLine(str(tmp_path / "a" / "model.py"), 7)) == "a/model.py:7"
    assert place(SourceLine("/home/someone/model.py", 7)) == "~/model.py:7"
    assert place(SourceLine("/elsewhere/model.py", 7)) == "/elsewhere/model.py:7"
    assert place(SourceLine(f"{tmp_path}_2/model.py", 7)) == f"{tmp_path}_2/model.py:7"


def test_a_line_has_no_control_characters():
    assert printable("a\tb\x1b") == "a b?"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (int(15.75 * 2**30), "15.75 GiB"),
        (2**40, "1.00 TiB"),
    ],
)
def test_sizes(number, said):
    assert numbers.size(number) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 100, "0%"),
        (1, 1000, "<1%"),
        (100, 100, "100%"),
        (10_000_001, 10_000_000, ">100%"),
        (9_999_999, 10_000_000, "<100%"),
        (1004, 1000, "100.4%"),
        (134, 100, "134%"),
    ],
)
def test_shares_never_round_across_the_limit(part, whole, said):
    assert numbers.share(part, whole) == said
