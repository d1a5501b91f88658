"""What Python's own `-m` runs is found before anything is imported, and what it refuses is not."""

import compileall
import sys
import zipfile

import pytest

from tpu_estimator_compat.old_names.legacy import locating

from .conftest import environment

TRAIN = "print('trained', __name__, __package__)\n"
EXTENDED = "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n"

_EDITABLE = """
import importlib.machinery, importlib.util, sys
class Finder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "a.b":
            return importlib.util.spec_from_file_location(fullname, {init!r})
        return None
sys.meta_path.append(Finder)
"""


def write(folder, *names, text=TRAIN):
    for name in names:
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The working directory is empty, and a folder beside it is on the path."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    return tmp_path / "path"


def namespace(folder):
    write(folder, "a/b/train")


def namespace_in_a_package(folder):
    write(folder, "a/b/train")
    write(folder, "a/__init__", text="")


def package_in_a_namespace(folder):
    write(folder, "a/b/train")
    write(folder, "a/b/__init__", text="")


def namespace_in_two_folders(folder):
    write(folder.parent / "cwd", "a/other")
    write(folder, "a/b/train")


def package_that_extends_its_path(folder):
    write(folder.parent / "cwd", "a/other")
    write(folder.parent / "cwd", "a/__init__", text=EXTENDED)
    write(folder, "a/b/train")
    write(folder, "a/__init__", text=EXTENDED)


def bytecode_alone(folder):
    package_in_a_namespace(folder)
    compileall.compile_dir(folder, quiet=1, legacy=True)
    for source in folder.rglob("*.py"):
        source.unlink()


def archive(folder):
    package_in_a_namespace(folder)
    write(folder, "a/__init__", text="")
    with zipfile.ZipFile(folder.parent / "packed.zip", "w") as packed:
        for source in sorted(folder.rglob("*.py")):
            packed.write(source, source.relative_to(folder))
            source.unlink()
    sys.path.insert(0, str(folder.parent / "packed.zip"))


def editable(folder):
    write(folder, "a/kept")
    write(folder.parent / "project", "b/train", "b/__init__")
    exec(_EDITABLE.format(init=str(folder.parent / "project" / "b" / "__init__.py")), {})


KINDS = [
    namespace,
    namespace_in_a_package,
    package_in_a_namespace,
    namespace_in_two_folders,
    package_that_extends_its_path,
    bytecode_alone,
    archive,
    editable,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_early_check_of_each_kind_of_package(elsewhere, monkeypatch, kind):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    elsewhere.mkdir()
    kind(elsewhere)
    before = set(sys.modules)
    locating.check("a.b.train", module=True)
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] == "a"}


@pytest.mark.parametrize("name", ["nothing", ".a", "a..b", "", "sys"])
def test_what_is_no_module(elsewhere, name):
    write(elsewhere, "train", "a/b/c")
    with pytest.raises(locating.NoScriptError, match="no module"):
        locating.check(name, module=True)


def test_a_package_without_main_names_the_modules_in_it(elsewhere):
    write(elsewhere, "a/b/train", "a/b/eval")
    with pytest.raises(locating.NoScriptError, match=r"Name a module in it: a\.b\.eval, a\.b\.tra"):
        locating.module("a.b")
    write(elsewhere, "a/b/__main__")
    locating.module("a.b")


def test_a_name_that_is_no_identifier_is_run(elsewhere):
    write(elsewhere, "a-b/train-it")
    locating.check("a-b.train-it", module=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [namespace, bytecode_alone, archive], ids=lambda k: k.__name__)
def test_it_runs_as_python_runs_it(forks, tmp_path, kind):
    folder = tmp_path / "path"
    folder.mkdir()
    kind(folder)
    given = {"cwd": tmp_path, "env": environment(folder, tmp_path / "packed.zip")}
    expected = forks.run("-m", "a.b.train", **given)
    words = ("-m", "tpu_estimator_compat", "run", "-m", "a.b.train")
    done = forks.run(*words, **given)
    assert done.stdout == expected.stdout == "trained __main__ a.b\n", done.stderr
