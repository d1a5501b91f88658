"""Trees that nobody vouches for: one odd file ends or hangs no command, and a row says why."""

import json
import os
import pathlib
import socket
import subprocess

import pytest

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.scan.each_file import EachFile
from tpu_estimator_compat.tools.scan.files import CannotRead

GOOD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"
NEW = "import tpu_estimator_compat.v1 as tf\nx = tf.estimator.tpu.TPUConfig()\n"
COMMANDS = ["scan", "migrate"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A tree with a good file that comes last; the working directory."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "z.py").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tree"


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": [c], "metadata": {}, "outputs": []} for c in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


NOT_READ = {
    **{
        f"{codec} as codec": f"# coding: {codec}\n{GOOD}".encode()
        for codec in ("rot13", "hex", "zlib", "undefined", "punycode")
    },
    "20,000 unary operators": f"{GOOD}y = {'-' * 20_000}1\n".encode(),
    "more than the limit": b"#" * (8 << 20) + b"\n",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_read_is_a_row(folder, command, capsys):
    for number, data in enumerate(NOT_READ.values()):
        (folder / f"a{number}.py").write_bytes(data)
    write = ["--write"] if command == "migrate" else []
    assert main([command, "tree", *write]) == 2
    out = capsys.readouterr().out
    rows = {line.split()[0] for line in out.splitlines() if "Not read: " in line}
    assert rows == {f"tree/a{number}.py" for number in range(len(NOT_READ))}
    assert f"{len(NOT_READ) + 1} files, 1 of which could be searched" in out
    assert not write or (folder / "z.py").read_text() == NEW


DEEP = {
    "a sum of 400 terms": f"y = {' + '.join(['x'] * 400)}\n",
    "attributes of attributes": f"y = x{'.a' * 500}\n",
    "calls of calls": f"y = x{'()' * 500}\n",
    "unary operators": f"y = {'-' * 1500}1\n",
    "elif": "if x: pass\n" + "elif x: pass\n" * 200,
}


def test_files_that_are_nested_deeply_are_migrated(folder):
    for number, text in enumerate(DEEP.values()):
        (folder / f"a{number}.py").write_text(GOOD + text)
    assert main(["migrate", "--write", "tree"]) == 0
    for number, text in enumerate(DEEP.values()):
        assert (folder / f"a{number}.py").read_text() == NEW + text


def make_socket(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
        os.rename(path.name, path)


ODD = {
    "a pipe": os.mkfifo,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a socket": make_socket,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["a.py", "a.ipynb"])
def test_what_is_no_regular_file_is_a_row(folder, command, name, capsys):
    for kind, make in ODD.items():
        inner = folder / kind.replace(" ", "_")
        inner.mkdir()
        make(inner / name)
    assert main([command, "tree"]) == 2
    out = capsys.readouterr().out
    assert out.count("  unreadable  Not ") == len(ODD)
    assert "z.py" in out


@pytest.mark.parametrize("path", ["tree/odd", "tree/odd.py", "tree/odd.txt"])
def test_a_pipe_that_is_named_hangs_nothing(path):
    os.mkfifo(path)
    assert main(["scan", path]) == 2


def test_1500_nested_folders(folder, capsys):
    inner = folder
    for _ in range(15):
        inner = inner / "/".join(["d"] * 100)
        inner.mkdir(parents=True)
        os.chdir(inner)  # paths of a system call are limited
        inner = pathlib.Path()
    pathlib.Path("deep.py").write_text(GOOD)
    os.chdir(folder.parent)
    assert main(["scan", "tree"]) == 0
    assert "2 files searched" in capsys.readouterr().out
    # Where pytest removes old folders, Python's recursion would be too deep.
    subprocess.run(["rm", "-r", "tree"], check=True)


def test_folders_whose_path_is_too_long(folder, capsys):
    name = "d" * 200
    for _ in range(30):
        os.mkdir(name)
        os.chdir(name)
    pathlib.Path("deep.py").write_text(GOOD)
    os.chdir(folder.parent)
    os.rename(name, f"tree/{name}")
    assert main(["scan", "tree"]) == 2
    out = capsys.readouterr().out
    assert "File name too long" in out


@pytest.mark.parametrize("path", ["tree", "tree/closed"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cannot_be_listed_is_a_row(folder, command, path, capsys, monkeypatch):
    (folder / "closed").mkdir()
    scandir, listdir = os.scandir, os.listdir

    def closed(of):
        def refuse(path="."):
            if "closed" in str(path):
                raise PermissionError(13, "Permission denied", path)
            return of(path)

        return refuse

    if os.geteuid():
        (folder / "closed").chmod(0)
    else:  # root may read everything
        monkeypatch.setattr(os, "scandir", closed(scandir))
        monkeypatch.setattr(os, "listdir", closed(listdir))
    assert main([command, path]) == 2
    out = capsys.readouterr().out
    assert "tree/closed" in out
    assert "Not read: The folder cannot be listed: " in out
    assert "no dead names" not in out


NOTEBOOKS = {
    "a mark": notebook("x = 1\n#_cell_ 99 0\ny = 2", GOOD),
    "a call of a magic": notebook("_of_ipython(7)\n%cd .", GOOD),
    "half of a character": notebook("x = '\udc80'", GOOD),
    "deep JSON": '{"cells": ' + "[" * 100_000,
    "a long number": '{"cells": ' + "1" * 10_000 + "}",
    "no text": '{"cells": [{"cell_type": "code", "source": {"a": 1}}]}',
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_an_odd_notebook_ends_nothing(folder, command, text, capsys):
    (folder / "a.ipynb").write_text(text)
    assert main([command, "tree"]) in (0, 2)
    assert "z.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("work", "good", "bad", "said"),
    [
        ("time.sleep", 0, 600, "It took more than 1 s"),
        ("ctypes.string_at", b"", 0, "was ended by SIGSEGV"),
        ("builtins.bytearray", 1, 5 << 30, "memory"),
        ("os.listdir", ".", "nothing", "FileNotFoundError"),
    ],
)
def test_work_that_hangs_dies_swells_or_fails_is_one_files_alone(work, good, bad, said):
    with EachFile(tuple(work.split(".")), limit=1.0) as of:
        of(good)
        with pytest.raises(CannotRead, match=said):
            of(bad)
        of(good)
