"""The child process of a probe: `python -m tpu_estimator_compat.tools.doctor.probe REQUEST`.

REQUEST is a JSON object: a `module`, the name of a `function` in it, the function's `arguments`,
and `answer`, the path of the file to write.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys


def main(request: str) -> None:
    """Writes the answer to a request, and returns: a crash at exit shows in the exit status."""
    asked = json.loads(request)
    path = pathlib.Path(asked["answer"])
    function = getattr(importlib.import_module(asked["module"]), asked["function"])
    answer = function(**asked["arguments"])
    path.with_suffix(".part").write_text(json.dumps(answer))
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main(sys.argv[1])
