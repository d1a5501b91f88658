"""Names that nobody vouches for: none can steer a terminal, or write a line of its own."""

import ast
import os
import pathlib
import sys

import pytest
import tensorflow as tf

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools import commands

SIGNS = "\x1b[31m\x07\r\x7f\x9b\u202e\u2066\u200f\ufeff\u2028\x1c\udc80"
NAME = f"a{SIGNS}b\nforged.py:1  tf.x"
OLD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"


def check(said: str, *, forged: int = 0) -> None:
    """Nothing but lines of printable characters, none of which a name has begun."""
    assert said
    assert [c for c in said if not c.isprintable() and c != "\n"] == []
    assert len([line for line in said.splitlines() if line.startswith("forged.py")]) == forged


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [["scan"], ["migrate"], ["migrate", "--write"]])
@pytest.mark.parametrize(
    "text", [OLD, f"{OLD}x = tf.contrib.nothing\n", "x = (\n", "# coding: hex\n"]
)
@pytest.mark.parametrize("terminal", [False, True])
def test_files(words, text, terminal, capsys, monkeypatch):
    pathlib.Path(f"{NAME}.py").write_text(text)
    os.symlink("/dev/null", f"{NAME}-link.py")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    main([*words, "."])
    check(capsys.readouterr().out)


def test_the_text_of_a_diff_on_a_terminal_and_in_a_file(capsys, monkeypatch):
    pathlib.Path("a.py").write_text(f"{OLD}y = '\x1b[2J\u202e'\n", encoding="utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    main(["migrate", "a.py"])
    assert "\x1b[2J\u202e" in capsys.readouterr().out  # as `patch` wants it
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    main(["migrate", "a.py"])
    check(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        [NAME],
        ["scan", NAME],
        ["scan", ".", f"--{NAME}"],
        ["migrate", NAME],
        ["names", NAME],
        ["run", NAME],
        ["compare", NAME],
        ["compare", "--dirs", NAME, NAME],
        ["compare", "--dirs", "--rtol", NAME, "a", "b"],
        ["compare", "--original-python", NAME, "train.py"],
        ["preflight", NAME],
        ["preflight", "--topology", NAME, "train.py"],
        ["map-weights", NAME, "keras:Sequential"],
        ["map-weights", ".", NAME],
        ["map-weights", ".", f"{NAME}:f"],
        ["doctor", "--report", f"{NAME}/x"],
    ],
    ids=lambda words: "-".join(words).encode("unicode_escape").decode()[:30],
)
def test_arguments(words, capsys):
    pathlib.Path("train.py").touch()
    try:
        status = main(words)
    except SystemExit as left:
        status = 1 if left.code else 0
        if isinstance(left.code, str):
            check(left.code)
            return
    assert status
    check(capsys.readouterr().err)


def test_tags_of_events_and_names_of_folders(folder, capsys):
    summary = tf.compat.v1.Summary
    for run, tag in (("old", "x"), (NAME, NAME.replace("\udc80", ""))):
        with tf.Graph().as_default():
            path = str(folder / run.replace("\udc80", ""))
            with tf.compat.v1.summary.FileWriter(path) as writer:
                values = [summary.Value(tag=name, simple_value=1.0) for name in ("loss", tag)]
                writer.add_summary(summary(value=values), 1)
    status = main(["compare", "--dirs", "old", NAME.replace("\udc80", "")])
    said = capsys.readouterr()
    assert status == 1, said.err
    check(said.out)


def test_no_command_prints_names_otherwise():
    """`say` and documents are the ways; `print` is for what they have made."""
    for path in pathlib.Path(commands.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                values = [v for v in ast.walk(node) if isinstance(v, ast.FormattedValue)]
                shown = {ast.unparse(value.value) for value in values}
                assert shown <= SAFE, (path.name, node.lineno, shown)


SAFE = {
    "told.text(color=self._color)",
    "NAME",
    "findings.searched(self._left, files)",
    "findings.counted(self._mended, 'finding')",
    "self._changed",
    "done",
    "len(hard)",
}
