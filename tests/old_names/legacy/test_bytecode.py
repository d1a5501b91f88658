"""What legacy modules compile to is kept as Python keeps bytecode, and never of another source."""

import importlib
import importlib.util
import os
import sys

import pytest

from tpu_estimator_compat.old_names.legacy import bytecode
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports

V1 = "import tensorflow as tf\n\ndef f():\n    return tf.contrib.tpu\n\nVALUE = {}\n"
V2 = "import tensorflow as tf\n\nVALUE = {}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("old_module", None)


@pytest.fixture
def compilations(monkeypatch):
    """Paths of what is compiled, and not read from a file."""
    found, compiled = [], bytecode.compiled

    def noting(source, path, *, numpy):
        found.append(path)
        return compiled(source, path, numpy=numpy)

    monkeypatch.setattr(bytecode, "compiled", noting)
    return found


def imported(folder, **settings):
    imports = LegacyImports([str(folder)], **settings)
    sys.modules.pop("old_module", None)
    sys.meta_path.insert(0, imports)
    try:
        importlib.invalidate_caches()
        module = importlib.import_module("old_module")
    finally:
        sys.meta_path.remove(imports)
    dialects = {id(names): dialect for (dialect, _), names in imports._by_meaning.items()}
    module.MEANING = dialects.get(id(module.__builtins__))
    return module


def write(folder, text):
    (folder / "old_module.py").write_text(text)


def kept(folder):
    return sorted((folder / "__pycache__").glob("*"))


@pytest.mark.parametrize(("text", "meaning"), [(V1, Dialect.V1), (V2, Dialect.V2)])
def test_a_second_import_compiles_nothing(folder, compilations, text, meaning):
    write(folder, text.format(7))
    first, second = imported(folder), imported(folder)
    assert (first.VALUE, first.MEANING) == (second.VALUE, second.MEANING) == (7, meaning)
    assert compilations == [str(folder / "old_module.py")]
    assert [path.name.endswith(".legacy.pyc") for path in kept(folder)] == [True]


def test_a_change_of_the_same_size_at_the_same_time_counts(folder, compilations):
    write(folder, V1.format(1))
    times = (folder / "old_module.py").stat()
    assert imported(folder).VALUE == 1
    write(folder, V1.format(2))
    os.utime(folder / "old_module.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert imported(folder).VALUE == 2
    assert len(compilations) == 2


def test_numpys_names_are_other_code(folder, compilations):
    write(folder, "import numpy as np\nVALUE = lambda: np.zeros(1, np.int8).tostring()\n")
    assert imported(folder, numpy=True).VALUE() == b"\0"
    plain = imported(folder).VALUE
    assert "__tpu_estimator_compat_tobytes__" not in plain.__code__.co_names
    assert imported(folder, numpy=True).VALUE() == b"\0"
    assert len(compilations) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(importlib.util, "MAGIC_NUMBER", b"other"),
        lambda patch: patch.setattr(bytecode, "_rules", lambda: b"other"),
    ],
    ids=["another Python", "another version of this package"],
)
def test_whatever_else_makes_code_counts(folder, compilations, monkeypatch, change):
    write(folder, V1.format(1))
    imported(folder)
    change(monkeypatch)
    assert imported(folder).VALUE == 1
    assert len(compilations) == 2


def test_a_module_that_moved_has_its_new_path_in_tracebacks(folder, tmp_path_factory, monkeypatch):
    write(folder, "def f():\n    pass\n")
    imported(folder)
    moved = tmp_path_factory.mktemp("moved") / "other"
    folder.rename(moved)
    monkeypatch.syspath_prepend(str(moved))
    assert imported(moved).f.__code__.co_filename == str(moved / "old_module.py")


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: b"", lambda data: b"x" * 9]
)
def test_a_damaged_file_is_written_anew(folder, compilations, damage):
    write(folder, V1.format(1))
    imported(folder)
    [file] = kept(folder)
    data = file.read_bytes()
    file.write_bytes(damage(data))
    assert imported(folder).VALUE == 1
    assert file.read_bytes() == data
    assert len(compilations) == 2


def test_nothing_is_written_where_python_writes_nothing(folder, compilations, monkeypatch):
    write(folder, V1.format(1))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert imported(folder).VALUE == imported(folder).VALUE == 1
    assert not kept(folder)
    assert len(compilations) == 2


def test_a_folder_that_cannot_be_written_to_costs_time_only(folder, compilations):
    write(folder, V1.format(1))
    (folder / "__pycache__").write_text("no folder")
    assert imported(folder).VALUE == imported(folder).VALUE == 1
    assert len(compilations) == 2


def test_a_link_to_a_legacy_module_is_judged_by_what_it_links_to(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "old_module.py"
    elsewhere.write_text(V1.format(1))
    (folder / "old_module.py").symlink_to(elsewhere)
    imports = LegacyImports([str(folder)])
    sys.meta_path.insert(0, imports)
    try:
        importlib.import_module("old_module")
    finally:
        sys.meta_path.remove(imports)
    assert not imports.loaded


def test_builtins_of_python_2_are_given_again(folder, compilations):
    write(folder, "VALUE = [*xrange(2)]\n")
    for _ in range(2):
        assert imported(folder).VALUE == [0, 1]
    assert len(compilations) == 1
