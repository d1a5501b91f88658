"""Cells as modules: IPython is the judge of what a magic is; and the file is given back."""

import json

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from support.notebooks import notebook

from tpu_estimator_compat.old_names.legacy.notebooks.cells import NotANotebook, Notebook, place

LINES = [
    "%matplotlib inline",
    "!ls -l {folder}",
    "files = !ls",
    "now = %pwd",
    "%time x = f(1)",
    "  %time x = f(1)",
    "  x = %time f(1)",
    "% cd x",
    "tf.contrib?",
    "tf.contrib??",
    "?tf.contrib",
    "if x:\n    !ls\n    y = 1",
    "!ls \\\n  -l\nx = 1",
    "%timeit -n 1 f()",
    # Python, though a line begins with % or !, or looks like it:
    "x = (a\n     % b)",
    "x = a \\\n  % b",
    's = """\n%time\n!ls\nwhat?\n"""',
    "d['a=%s'] = 1",
    "x %= 3",
    "a != b",
    "print('x = %s' % x)",
    "# what?",
    "f(a='%s',\n  b=!c)",
    "x = {\n 'a':\n   1\n}\n%cd x",
]


@pytest.mark.parametrize("source", LINES)
def test_ipython_takes_the_same_lines_for_magics(source):
    [cell] = Notebook(notebook(source)).cells.values()
    transformed = TransformerManager().transform_cell(source).splitlines()
    ours = [a != b for a, b in zip(source.split("\n"), cell.split("\n"), strict=False)]
    theirs = "".join(transformed)
    if not any("get_ipython" in line for line in transformed):
        assert cell == source + "\n"
    else:
        assert any(ours)
        # What IPython keeps of a cell is what we keep.
        kept = [line for line, changed in zip(source.split("\n"), ours, strict=True) if not changed]
        assert all(line.strip() in theirs for line in kept)
        assert cell.count("\n") == source.count("\n") + 1


AUTOMAGIC = [
    "ls",
    "cd ..",
    "cd /content",
    "ls -l\n",
    "pip install -q a==1",
    " pwd",
    "run a.py -x 1",
]


@pytest.mark.parametrize("source", AUTOMAGIC)
def test_a_line_alone_may_be_a_magic(source):
    assert Notebook(notebook(source)).cells == {1: "_of_ipython(0)\n"}


@pytest.mark.parametrize(
    "source",
    [
        "ls = 1",
        "ls += 1",
        "run(tf.contrib)",
        "config.x",
        "env['a']",
        "ls\nls",
        "x = ls",
        "lsx",
        "print x",
    ],
)
def test_python_is_no_magic(source):
    assert Notebook(notebook(source)).cells == {1: f"{source}\n"}


@pytest.mark.parametrize("source", [*LINES, *AUTOMAGIC, "%%time\nx = 1", "%%bash\nls", "", "\n\n"])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_the_file_is_given_back(source, indent):
    text = notebook("# é", source, "y = 2", text=[1], indent=indent)
    book = Notebook(text)
    assert book.with_modules(book.modules()) == text


def test_a_changed_line_changes_no_other_byte():
    text = notebook("import a\n%time a.b()\nc = 'é'", "out", "# ü")
    # Jupyter writes no such escapes, other programs do.
    text = text.replace("\"c = 'é'\"", "\"c = '\\u00e9'\"").replace('"out"', '"o", "ut"')
    book = Notebook(text)
    changed = [module.replace("a.b()", "z.b()  # é") for module in book.modules()]
    assert book.with_modules(changed) == text.replace("%time a.b()", "%time z.b()  # é")


def test_a_source_that_is_one_string():
    content = json.loads(notebook("x = 1\ny = 2"))
    content["cells"][0]["source"] = "x = 1\ny = 2"
    text = json.dumps(content)
    book = Notebook(text)
    [module] = book.modules()
    assert json.loads(book.with_modules([module.replace("2", "3")]))["cells"][0]["source"] == (
        "x = 1\ny = 3"
    )


def test_cells_that_are_modules_by_themselves():
    text = notebook("x = 1", "y = (", "%%writefile a.py\nz = 1", "%%bash\nls", "%%time\nx")
    together, broken, written = Notebook(text).modules()
    assert [place(together, n) for n in range(1, 6)] == [(1, 0), (1, 1), (5, 0), (5, 1), (5, 2)]
    assert place(broken, 2) == (2, 1)
    assert written.endswith("\nz = 1\n")
    assert place(written, 2) == (3, 2)


def test_format_3():
    content = {
        "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"], "language": "python"}]}]
    }
    assert Notebook(json.dumps(content)).cells == {1: "x = 1\n"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no JSON", "It is no notebook: JSONDecodeError"),
        ("[]", "It is no notebook"),
        ("{}", "It is no notebook: KeyError: 'cells'"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', "It is no notebook: TypeError"),
        ('{"cells": [], "metadata": {"language_info": {"name": "R"}}}', "a notebook of R"),
    ],
)
def test_what_is_no_notebook(text, words):
    with pytest.raises(NotANotebook, match=words):
        Notebook(text)
