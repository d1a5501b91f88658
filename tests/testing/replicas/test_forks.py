import os

import pytest

from tpu_estimator_compat.testing.replicas import forks


def test_server_that_cannot_import_says_why():
    server = forks.Server(["json", "no_such_module"], os.environ)
    with pytest.raises(RuntimeError, match="No module named 'no_such_module'"):
        forks.Forked(server, os._exit)
    server.close()
    assert not server.folder.exists()
