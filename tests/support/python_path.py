"""What PYTHONPATH is for the processes that tests start."""

import os
import pathlib

PLAIN_IMPORTS = pathlib.Path(__file__).parent / "plain_imports"


def joined(*folders: str | os.PathLike[str]) -> str:
    """The folders, and what tests have on PYTHONPATH: among it `PLAIN_IMPORTS`."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([*map(str, folders), *([given] if given else [])])
