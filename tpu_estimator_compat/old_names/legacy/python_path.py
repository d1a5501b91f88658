"""PYTHONPATH: which modules in its folders belong to the script, and which to installed packages.

Legacy scripts ran with PYTHONPATH set to the root of their repository, or of another one. So a
module that is found there counts as legacy, unless a distribution owns it: `pip install --target`,
or an editable installation of a modern package.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable

_INSTALLED = {"site-packages", "dist-packages"}
_OF_TENSORFLOW = {"keras", "tensorflow", "tensorflow_estimator", "tf_keras"}


class PythonPath:
    """The folders of PYTHONPATH at construction, or of `value`."""

    def __init__(self, value: str | None = None):
        if value is None:
            ignored = sys.flags.ignore_environment
            value = "" if ignored else os.environ.get("PYTHONPATH", "")
        folders = [os.path.realpath(folder) for folder in value.split(os.pathsep) if folder]
        self.folders = [f for f in folders if not _INSTALLED.intersection(f.split(os.sep))]

    def is_own(self, top: str, origin: str) -> bool:
        """Whether a module, by its top-level name and its file, belongs to the script."""
        if top in _OF_TENSORFLOW:
            return False
        for folder in self.folders:
            if below(origin, [folder]):
                return not self._is_installed(top, folder)
        return False

    def _is_installed(self, top: str, folder: str) -> bool:
        for found in self._distributions.get(top, ()):
            if os.path.realpath(str(found.locate_file(""))) == folder:
                return True
            project = _editable_project(found)
            if project is not None and below(folder, [project]):
                return True
        return False

    @functools.cached_property
    def _distributions(self) -> dict[str, list[importlib.metadata.Distribution]]:
        """Distributions by top-level module names; reading them takes half a second."""
        by_name: dict[str, list[importlib.metadata.Distribution]] = {}
        for found in importlib.metadata.distributions():
            by_name.setdefault(found.metadata["Name"], []).append(found)
        tops = importlib.metadata.packages_distributions()
        return {top: [d for n in {*names} for d in by_name[n]] for top, names in tops.items()}


def _editable_project(found: importlib.metadata.Distribution) -> str | None:
    """The folder of a project with an editable installation; None for other distributions."""
    direct_url = json.loads(found.read_text("direct_url.json") or "{}")
    if not direct_url.get("dir_info", {}).get("editable"):
        return None
    path = urllib.parse.urlsplit(direct_url["url"]).path
    return os.path.realpath(urllib.request.url2pathname(path))


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is in one of the folders, but not in site-packages below it."""
    real = _real(path)
    for folder in folders:
        start = folder.rstrip(os.sep) + os.sep
        if real == folder or real.startswith(start):
            rest = real[len(start) :].split(os.sep)
            if not _INSTALLED.intersection(rest):
                return True
    return False


def _real(path: str) -> str:
    """The real path; real paths of folders are cached, as each module of a folder asks for it."""
    folder, name = os.path.split(path)
    if not os.path.isabs(folder) or not name or name in (os.curdir, os.pardir):
        return os.path.realpath(path)
    path = os.path.join(_real_folder(folder), name)
    return os.path.realpath(path) if os.path.islink(path) else path


@functools.lru_cache(maxsize=1024)
def _real_folder(absolute: str) -> str:
    return os.path.realpath(absolute)
