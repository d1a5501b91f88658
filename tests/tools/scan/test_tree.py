"""Names of TensorFlow that come by other modules of a tree."""

import functools
import json
import os
import pathlib

import pytest

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.scan.files import python_files
from tpu_estimator_compat.tools.scan.findings import Status
from tpu_estimator_compat.tools.scan.module import of_file
from tpu_estimator_compat.tools.scan.tree import Tree

BASE = "import tensorflow as tf\nfrom tensorflow.compat import v1\n"
DENSE = "tf.layers.dense works"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(files):
    for name, text in files.items():
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def searched(*paths):
    files = list(python_files(paths))
    tree = Tree(files)
    tree.search(functools.partial(of_file, tree.near))
    return [finding for file in files for finding in tree.findings(file)]


def found(*paths):
    """`file:line name status` of each finding."""
    findings = searched(*paths)
    return [f"{os.path.normpath(f.place)} {f.name} {f.status.value}" for f in findings]


USERS = {
    "star": ("from base import *\nv1.layers.dense(x)", 2),
    "name": ("from base import v1 as t\nt.layers.dense(x)", 2),
    "module": ("import base\nbase.v1.layers.dense(x)", 2),
    "module with another name": ("import base as b\nb.v1.layers.dense(x)", 2),
    "assigned": ("import base\n\nt = base.v1\nt.layers.dense(x)", 4),
    "in a function": ("def f(x):\n  from base import v1\n  return v1.layers.dense(x)", 3),
    "tried": ("try:\n  from base import v1\nexcept ImportError:\n  v1 = None\nv1.layers.dense", 5),
    "or its own": (
        "try:\n  import lost as t\nexcept E:\n  from base import v1 as t\nt.layers.dense",
        5,
    ),
}


@pytest.mark.parametrize("user", USERS)
def test_ways_to_use_a_module(user):
    code, line = USERS[user]
    make({"base.py": BASE, "a.py": code})
    assert found(".") == [f"a.py:{line} {DENSE}"]


PLACES = {
    "beside the script": ("base.py", "a.py", "from base import v1"),
    "at the root": ("base.py", "sub/a.py", "from base import v1"),
    "in src": ("src/base.py", "tests/a.py", "from base import v1"),
    "in a package": ("pkg/base.py", "a.py", "from pkg.base import v1"),
    "in a package that is searched": ("p/__init__.py", "p/a.py", "from p import v1"),
    "a submodule": ("pkg/base.py", "a.py", "import pkg.base\nv1 = pkg.base.v1"),
    "a submodule with a name": ("pkg/base.py", "a.py", "import pkg.base as b\nv1 = b.v1"),
    "relative": ("pkg/base.py", "pkg/a.py", "from . import base\nv1 = base.v1"),
    "relative, above": ("pkg/base.py", "pkg/sub/a.py", "from ..base import v1"),
    "without __init__.py": ("space/pkg/base.py", "a.py", "from space.pkg.base import v1"),
    "in place of an installed one": ("numpy.py", "a.py", "from numpy import v1"),
}


@pytest.mark.parametrize("case", PLACES)
def test_places_of_a_module(case):
    base, user, imports = PLACES[case]
    make({base: BASE, user: f"{imports}\n\n\nv1.layers.dense(x)"})
    line = 4 + imports.count("\n")
    assert found(".") == [f"{user}:{line} {DENSE}"]
    if "/" in base and base.split("/")[0] == user.split("/")[0]:
        assert found(base.split("/")[0]) == [f"{user}:{line} {DENSE}"]


def test_the_module_beside_a_script_comes_first_and_folders_without_init_last():
    make({"base.py": "", "x/base.py": BASE, "x/a.py": "import base\nbase.v1.layers.dense"})
    make({"y/base/b.py": BASE, "y/a.py": "import base\nbase.v1.layers.dense"})
    assert found(".") == [f"x/a.py:2 {DENSE}", "y/a.py:2 v1 unknown"]


CHAINS = {
    "of three": {"b.py": "from base import v1", "c.py": "from b import *", "a.py": "import c as b"},
    "by __init__": {"b/__init__.py": "from .c import v1", "b/c.py": "from base import v1"},
    "by an assignment": {"b.py": "import base\nv1 = base.v1"},
    "in a circle": {
        "b.py": "import a\nfrom c import *",
        "c.py": "from b import *\nfrom base import *",
    },
}


@pytest.mark.parametrize("case", CHAINS)
def test_chains_of_modules(case):
    make({"base.py": BASE, "a.py": "import b"} | CHAINS[case])
    pathlib.Path("a.py").write_text(pathlib.Path("a.py").read_text() + "\nb.v1.layers.dense(x)")
    assert found(".") == [f"a.py:2 {DENSE}"]


UNKNOWN = {
    "a module": (
        "from utils import tf\ntf.layers.dense",
        2,
        "utils, which is not here",
    ),
    "a star": ("from utils import *\ntf.layers.dense", 2, "utils, which is not here"),
    "an attribute": ("import u\n\nu.tf.nn\nu.tf.abs", 3, "u, which is not here"),
    "by base": ("import base\nbase.tf.abs", 2, "lost, which is not here"),
    "a value": ("import other\nother.tf.abs", 2, "other.py, where no import says"),
    "outside": ("from ...x import tf\ntf.abs", 2, "...x, which is not here"),
    "v1": ("from utils import v1\nv1.layers.dense", 2, "utils, which is not here"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_unknown_is_said(case):
    code, line, said = UNKNOWN[case]
    make({"a.py": code, "base.py": "from lost import tf", "other.py": "tf = load('tensorflow')"})
    [finding] = searched("a.py", "base.py", "other.py")
    assert (finding.line, finding.status) == (line, Status.UNKNOWN)
    assert finding.advice.startswith(f"{finding.name} comes from {said}")


def test_what_is_unknown_is_counted(capsys):
    make({"a.py": "from utils import tf\ntf.layers.dense\ntf.layers.flatten"})
    assert main(["scan", "--json", "a.py"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == {"unknown": 1}
    assert told["findings"][0]["advice"].startswith("tf comes from utils, which is not here")
    assert main(["scan", "a.py"]) == 1
    assert "1 file searched, 1 finding in 1:\n     1 unknown" in capsys.readouterr().out
    assert main(["migrate", "a.py"]) == 1
    out = capsys.readouterr().out
    assert "To be done by hand:\na.py:2  tf  unknown  tf comes from utils" in out
    assert "1 to change by hand" in out


@pytest.mark.parametrize(
    "code",
    [
        "from utils import layers\nlayers.dense(x)",
        "from api import v1\nv1.get(x)",
        "try:\n  from utils import tf\nexcept ImportError:\n  import tensorflow as tf\ntf.abs(x)",
        "from base import other\nother.layers.dense",
        "from mine import tf\ntf.layers.dense(x)",
        "import horovod.tensorflow as hvd\nhvd.init()",
        "from base import *\nlen.x",
    ],
)
def test_what_is_not_of_tensorflow(code):
    make({"base.py": BASE, "mine/tf/layers.py": "def dense(x): pass", "a.py": code})
    assert found(".") == []


def test_users_show_what_a_module_means():
    make({"base.py": "import tensorflow as tf", "a.py": "from base import tf\ntf.placeholder"})
    assert found(".") == ["base.py:1 tf works"]
    of_2 = "import tensorflow as tf\ntf.summary.create_file_writer\nfrom tensorflow import layers"
    make({"base.py": of_2})
    make({"a.py": "from base import layers\nlayers.dense"})
    assert found(".") == [f"a.py:2 {DENSE}", "base.py:3 tf.layers works"]


MIGRATED = [
    (  # a module that becomes ours
        {"base.py": "import tensorflow as tf\n", "a.py": "import base\nbase.tf.layers.dense(x)\n"},
        {"base.py": "import tpu_estimator_compat.v1 as tf\n"},
    ),
    (  # a module of TensorFlow 2
        {
            "base.py": "import tensorflow as tf\ntf.function\n",
            "a.py": "import base\nbase.tf.estimator.RunConfig()\n",
        },
        {"a.py": "import base\nfrom tpu_estimator_compat import v1\nv1.estimator.RunConfig()\n"},
    ),
    (  # compat.v1 that only others use
        {
            "base.py": "import tensorflow.compat.v1 as tf\n",
            "a.py": "from base import tf as t\nt.layers.dense(x)\n",
        },
        {"base.py": "import tpu_estimator_compat.v1 as tf\n"},
    ),
    (  # a name that moved
        {
            "base.py": "import tensorflow as tf\n",
            "a.py": "import base\nbase.tf.contrib.tpu.TPUConfig\n",
        },
        {
            "base.py": "import tpu_estimator_compat.v1 as tf\n",
            "a.py": "import base\nbase.tf.estimator.tpu.TPUConfig\n",
        },
    ),
    (  # a namespace
        {
            "base.py": "from tensorflow.contrib import tpu\n",
            "a.py": "from base import *\ntpu.TPUConfig\n",
        },
        {"base.py": "from tpu_estimator_compat.v1.contrib import tpu\n"},
    ),
]


def test_migrate(capsys):
    """In a folder each: that of a module is the first in which its imports are found."""
    make(
        {
            f"{number}/{name}": t
            for number, (before, _) in enumerate(MIGRATED)
            for name, t in before.items()
        }
    )
    assert main(["migrate", "--write", "."]) == 0
    assert "0 to change by hand" in capsys.readouterr().out
    for number, (before, after) in enumerate(MIGRATED):
        made = {name: pathlib.Path(f"{number}/{name}").read_text() for name in before}
        assert made == before | after
    assert found(".") == []
    assert main(["migrate", "."]) == 0
    assert "0 to change:" in capsys.readouterr().out


def test_a_notebook_uses_a_module(capsys):
    cells = [
        {"cell_type": "code", "source": [text], "metadata": {}, "outputs": []}
        for text in ("from base import tf", "tf.layers.dense(x)")
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    make({"base.py": "import tensorflow as tf\n", "x.ipynb": json.dumps(notebook)})
    assert found(".") == ["base.py:1 tf works", f"x.ipynb, cell 2, line 1 {DENSE}"]


def test_a_module_that_cannot_be_read_hides_no_other(capsys):
    make({"base.py": "x = \x00", "a.py": "from base import tf\ntf.layers.dense", "b.py": BASE})
    assert main(["migrate", "."]) == 2
    assert "tf comes from ./base.py, where no import" in capsys.readouterr().out
