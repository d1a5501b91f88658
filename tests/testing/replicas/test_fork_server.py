"""The fork server as a plain file, under each Python that this machine has."""

import glob
import os
import pathlib
import shutil

import pytest
from support.processes import wait_for

from tpu_estimator_compat.testing.replicas import forks

PYTHONS = ["python3", *(f"python3.{minor}" for minor in range(7, 15))]

CODE = """
import os, sys
assert os.environ["MARK"] == "child"
print("json" in sys.modules, sys.argv[1:], os.getcwd())
print("to stderr", file=sys.stderr)
sys.exit(5)
"""


def interpreter(name: str) -> str:
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    kept = glob.glob(str(versions / "versions" / f"{name.removeprefix('python')}.*/bin/python"))
    found = kept[0] if kept and name != "python3" else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} here")
    return found


@pytest.mark.parametrize("name", PYTHONS)
def test_server_forks_scripts_and_leaves_nothing(tmp_path, name):
    server = forks.Server(["json"], {"PATH": os.defpath}, os.getpid(), interpreter(name))
    try:
        files = [os.devnull, tmp_path / "out", tmp_path / "err"]
        job = forks.job("-c", CODE, "a", files=files, cwd=tmp_path, env={"MARK": "child"})
        with forks.Forked(server.address(), job) as forked:
            assert forked.wait(60) == 5
        assert (tmp_path / "out").read_text() == f"True ['a'] {tmp_path}\n"
        assert (tmp_path / "err").read_text() == "to stderr\n"
        sleeps = forks.job("-c", "import time; time.sleep(600)", files=files)
        with forks.Forked(server.address(), sleeps) as killed:
            assert killed.poll() is None
    finally:
        server.close()
    wait_for(lambda: not pathlib.Path(f"/proc/{killed.pid}").exists())
    assert not server.folder.exists()


def test_server_ends_with_its_owner(tmp_path):
    owner = os.posix_spawn(shutil.which("sleep") or "", ["sleep", "600"], {})
    server = forks.Server(["json"], os.environ, owner)
    files = [os.devnull, tmp_path / "out", tmp_path / "err"]
    job = forks.job("-c", "import time; time.sleep(600)", files=files)
    with forks.Forked(server.address(), job) as forked:
        os.kill(owner, 9)
        os.waitpid(owner, 0)
        wait_for(lambda: not pathlib.Path(f"/proc/{forked.pid}").exists())
        wait_for(lambda: not server.folder.exists())
    server.close()


def test_server_that_cannot_import_says_why():
    server = forks.Server(["json", "no_such_module"], os.environ, os.getpid())
    with pytest.raises(RuntimeError, match="No module named 'no_such_module'"):
        server.address()
    server.close()
