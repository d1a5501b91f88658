"""Public names of a TensorFlow: a line for each namespace, with the names in it.

`PYTHON tests/support/public_names.py API` prints those of the TensorFlow that PYTHON has, where API
is `v1` or `v2`. `tests/old_names/legacy/public_names_*.txt` keep what 1.15 and 2.15 had.
"""

import sys
import types


def public(root, path="tf", seen=()):
    """Lines of a namespace and of those below it; runs on Python 3.7, too."""
    names = sorted(name for name in dir(root) if not name.startswith("_"))
    found, lines = [], []
    for name in names:
        try:
            value = getattr(root, name)
        except (AttributeError, ImportError):
            continue
        where = getattr(value, "__name__", "")
        if not isinstance(value, types.ModuleType):
            found.append(name)
        elif _is_api(path, name, where) and value not in seen:
            lines += public(value, f"{path}.{name}", (*seen, value))
    return [f"{path}: {' '.join(found)}", *lines]


def _is_api(path, name, where):
    if path == "tf" and name in ("compat", "contrib"):
        return False
    return "api" in where or "keras" in where


if __name__ == "__main__":
    import tensorflow as tf

    api = tf if sys.argv[1] == ("v2" if tf.__version__[0] == "2" else "v1") else tf.compat.v1
    print("\n".join(public(api)))
