"""Files that `migrate --write` rewrites: what is not to change stays, or the file is left alone."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.migrate import writing
from tpu_estimator_compat.tools.scan.files import read

OLD = "import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n"
NEW = "import tpu_estimator_compat.v1 as tf\nx = tf.estimator.tpu.TPUConfig()\n"


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """A file to rewrite, in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = pathlib.Path("a.py")
    path.write_text(OLD)
    return path


def rewrite(path: pathlib.Path) -> None:
    writing.write(str(path), read(str(path)), NEW)
    assert path.read_text() == NEW
    assert not list(path.parent.glob(".*"))  # nothing is left beside it


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_and_all_bits_of_the_mode_stay(path):
    os.chown(path, 12345, 54321)
    os.chmod(path, 0o6751)
    rewrite(path)
    known = path.stat()
    assert (known.st_uid, known.st_gid, known.st_mode & 0o7777) == (12345, 54321, 0o6751)


def test_extended_attributes_stay(path):
    try:
        os.setxattr(path, "user.origin", b"\0 by hand")
    except OSError as error:
        pytest.skip(f"the file system has none: {error}")
    rewrite(path)
    assert os.getxattr(path, "user.origin") == b"\0 by hand"


@pytest.mark.parametrize("kind", ["owner", "attributes", "link"])
def test_what_a_new_file_cannot_have_leaves_the_old_one(path, monkeypatch, kind):
    """As where another user's file may be written: a new file would be one's own."""
    with monkeypatch.context() as patch:
        if kind == "owner":
            known, other = os.stat, list(os.stat(path))
            other[stat.ST_UID] += 1
            patch.setattr(os, "chown", lambda *unused_arguments: None)
            patch.setattr(
                os,
                "stat",
                lambda p, **how: (
                    os.stat_result(other) if str(p).endswith("/a.py") else known(p, **how)
                ),
            )
        elif kind == "attributes":
            patch.setattr(writing, "_attributes", lambda path: {"user.x": os.fsencode(path)})
        else:
            os.link(path, "b.py")
        with pytest.raises(OSError, match="a new file cannot have"):
            writing.write(str(path), read(str(path)), NEW)
    assert path.read_text() == OLD


def test_a_file_that_has_changed_in_the_meantime_is_left_alone(path):
    source = read(str(path))
    path.write_text("y = 1\n")
    with pytest.raises(OSError, match="changed since"):
        writing.write(str(path), source, NEW)
    assert path.read_text() == "y = 1\n"


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("write", [["--write"], []])
def test_what_a_link_leads_to_outside_is_left_alone_and_said(is_folder, write, capsys):
    for name in ("outside", "tree"):
        os.mkdir(name)
    pathlib.Path("outside/b.py").write_text(OLD)
    os.symlink("../outside" if is_folder else "../outside/b.py", "tree/b.py")
    pathlib.Path("tree/c.py").write_text(OLD)
    status = main(["migrate", *write, "tree"])
    out = capsys.readouterr().out
    assert pathlib.Path("outside/b.py").read_text() == OLD
    assert (NEW if write else OLD) == pathlib.Path("tree/c.py").read_text()
    if not is_folder:  # folders that links lead to are not entered
        assert status == 2
        assert f"It links to {pathlib.Path('outside/b.py').resolve()}, outside" in out
        assert "Not written: tree/b.py." in out


def test_links_within_what_was_given_are_followed(path):
    os.symlink("a.py", "0.py")
    assert main(["migrate", "--write", "."]) == 0
    assert path.read_text() == NEW
    assert os.readlink("0.py") == "a.py"


BYTES = {
    "cp932": b"\xed\x40",  # one of two codes of a character
    "euc_jp": b"\x8f\xa2\xb7",
    "utf-7": b"+AGE-",
    "unicode_escape": b"\\x61",
    "raw_unicode_escape": b"\\u3042",
    "shift_jisx0213": b"\x5c",
    "hz": b"~{VPND~}~{VPND~}",
    "iso2022_jp": b'\x1b$B$"\x1b(B\x1b(B',
}


@pytest.mark.parametrize("codec", BYTES)
def test_no_byte_is_changed_that_the_codec_does_not_give_back(path, codec):
    data = f"# coding: {codec}\n".encode() + b"# " + BYTES[codec] + b"\n"
    path.write_bytes(data + OLD.encode())
    is_same = data.decode(codec).encode(codec) == data
    assert main(["migrate", "--write", "."]) == (0 if is_same else 2)
    assert path.read_bytes() == data + (NEW if is_same else OLD).encode()


CELLS = {
    "a mark": "y = 1\n#_cell_ 1 0\nz = 2",
    "several marks": "#_cell_ 2 0\n#_cell_0 1 0\n#_cell_1 1 1\nz = '''\n#_cell_ 1 0\n'''",
    "a call of a magic": "%cd /tmp\ny = 1  #_of_ipython(0)\n#_of_ipython(1)\n!ls",
    "a mark in a cell that does not parse": "#_cell_ 1 0\ny = (",
    "a mark in a file": "%%writefile b.py\n#_cell_ 1 0\nz = 2",
    "form feeds": "\f\n#\ue000\ny = 2",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_cells_that_are_not_to_change_keep_their_code(cell):
    def text(first: str) -> str:
        sources = [first.splitlines(keepends=True), cell.splitlines(keepends=True)]
        cells = [{"cell_type": "code", "source": source} for source in sources]
        return json.dumps({"cells": cells, "metadata": {}}, indent=1)

    pathlib.Path("a.ipynb").write_text(text(OLD))
    main(["migrate", "--write", "a.ipynb"])
    assert pathlib.Path("a.ipynb").read_text() == text(NEW)


TEXTS = {
    "form feed and a private-use character": "\f\n#\ue000\n \f\ny = '#\ue000'\n",
    "the word for a print statement": "_print_of_python_2=3\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_words_of_this_package_in_a_file_stay(path, text):
    path.write_text(OLD + text, encoding="utf-8")
    main(["migrate", "--write", "a.py"])
    assert path.read_text(encoding="utf-8") == NEW + text


def test_what_was_written_is_said_when_it_is_interrupted(path, monkeypatch, capsys):
    pathlib.Path("b.py").write_text(OLD)
    write = writing.write

    def interrupted(file, *others):
        if file.endswith("b.py"):
            raise KeyboardInterrupt
        write(file, *others)

    monkeypatch.setattr(writing, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["migrate", "--write", "."])
    out = capsys.readouterr().out
    assert "Rewrote ./a.py" in out
    assert "Stopped early: 1 file left unchanged." in out


SIGNALLED = """
import os, sys
from tpu_estimator_compat import __main__
from tpu_estimator_compat.tools.migrate import writing

class Signalling:
    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        real = getattr(self.module, name)

        def call(*arguments, **options):
            result = real(*arguments, **options)
            os.kill(os.getpid(), int(sys.argv[2]))
            return result

        return call if name == sys.argv[1] else real

writing.os = Signalling(os)
sys.exit(__main__.main(["migrate", "--write", "tree"]))
"""


@pytest.mark.parametrize(
    ("function", "number"),
    [
        ("open", signal.SIGTERM),
        ("fsync", signal.SIGHUP),
        ("replace", signal.SIGTERM),
        ("replace", signal.SIGINT),
    ],
)
def test_a_signal_at_any_moment_leaves_whole_files_and_says_so(path, function, number):
    os.mkdir("tree")
    for name in "abc":
        pathlib.Path("tree", f"{name}.py").write_text(OLD)
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, function, str(int(number))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == (-number if number == signal.SIGINT else 128 + number)
    assert sorted(os.listdir("tree")) == ["a.py", "b.py", "c.py"]
    texts = [pathlib.Path("tree", f"{name}.py").read_text() for name in "abc"]
    assert texts == [NEW if function == "replace" else OLD, OLD, OLD]
    assert "Stopped early: " in done.stdout


def test_an_ignored_signal_stays_ignored(path):
    os.mkdir("tree")
    pathlib.Path("tree/a.py").write_text(OLD)
    done = subprocess.run(
        ["nohup", sys.executable, "-c", SIGNALLED, "fsync", str(int(signal.SIGHUP))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert pathlib.Path("tree/a.py").read_text() == NEW
