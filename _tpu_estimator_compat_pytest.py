"""What pytest loads wherever tpu_estimator_compat is installed: loads its plugin, if that can be.

A module outside of the package, since importing the package is an ImportError where TensorFlow's
installation cannot work. Pytest would end with it, for tests that have nothing to do with either.
"""

import pytest

_PLUGIN = "tpu_estimator_compat.testing.plugin"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Loads the plugin, once: a user may have named it with `-p` as well."""
    del parser
    try:
        import tpu_estimator_compat  # noqa: F401
    except ImportError:
        return  # a test that imports the package is told why
    pluginmanager.import_plugin(_PLUGIN)
