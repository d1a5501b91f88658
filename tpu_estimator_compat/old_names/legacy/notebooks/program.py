"""A notebook as a program: IPython runs its code cells in order, in one namespace."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import types

from tpu_estimator_compat import environment
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, shown
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports
from tpu_estimator_compat.old_names.legacy.locating import NoScriptError
from tpu_estimator_compat.old_names.legacy.notebooks.cells import NotANotebook, Notebook
from tpu_estimator_compat.old_names.legacy.python_numpy import python2

_ASKS_FOR_1 = re.compile(r"^\s*%tensorflow_version\s+1", re.MULTILINE)  # a magic of Colab


class Program:
    """A notebook to run; NoScriptError if the file is not a Python notebook.

    Attributes:
      cells: the source of each code cell by its number.
      may_fail: numbers of the cells after whose errors Jupyter goes on.
      shown: what the names in the cells show.
    """

    def __init__(self, source: bytes, path: str) -> None:
        try:
            notebook = Notebook(source.decode("utf-8-sig"))
        except (NotANotebook, UnicodeDecodeError) as error:
            raise NoScriptError(f"{path}: {error}") from error
        self.path, self.cells, self.may_fail = path, notebook.sources, notebook.may_fail
        self.shown = shown(python2.mended(notebook.divided[0]).tree, path)
        if any(map(_ASKS_FOR_1.search, self.cells.values())):
            self.shown = dataclasses.replace(self.shown, dialect=Dialect.V1)

    def run(self, main: types.ModuleType) -> None:
        """Runs the cells in the notebook's folder, with `main` as their module.

        Raises:
          NoScriptError: IPython is not installed.
        """
        try:
            from tpu_estimator_compat.old_names.legacy.notebooks import shell
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != "IPython":
                raise
            raise NoScriptError(
                f"{self.path} is a notebook, which IPython runs. Install it: "
                f"`{environment.pip_line('notebook')}`."
            ) from error
        imports = next(f for f in sys.meta_path if isinstance(f, LegacyImports))
        folder = os.path.dirname(os.path.abspath(self.path))
        with contextlib.chdir(folder), shell.started(main, imports) as ipython:
            ipython.run(self)
