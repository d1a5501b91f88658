"""Python imports this at its start: TensorFlow and Keras import no more than they depend on.

They try to import packages that only the extras of this one bring, and take longer for that than
for their own modules. A user's installation has not got them, nor do children of tests: unless a
script imports such a package itself, which it can.
"""

import sys

_FROM = {"keras", "tensorflow", "tf_keras"}
_OPTIONAL = {"IPython", "PIL", "jax", "matplotlib", "pandas", "scipy", "sklearn"}


class _Hidden:
    """Finds nothing; says of optional packages that they are not there."""

    def find_spec(self, name, path=None, target=None):
        del path, target
        if name in _OPTIONAL and _importer() in _FROM:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def _importer():
    """The package that has the import statement that is carried out."""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").partition(".")[0] if frame else ""


sys.meta_path.insert(0, _Hidden())
