import getpass
import json
import os
import platform
import sys
import tempfile

import pytest

from tpu_estimator_compat.tools.doctor import report
from tpu_estimator_compat.tools.doctor.check_results import (
    CheckResult,
    Status,
    exit_status,
    verdict,
)

FOUND = [
    CheckResult("versions", Status.OK, "Python 3.11.7"),
    CheckResult(
        "devices", Status.FAILURE, "JAX: ended by SIGABRT. " + "word " * 30, "First.\n  Then."
    ),
    CheckResult("figures", Status.FIGURE, "5 steps/s"),
]


def test_exit_status_and_verdict():
    assert exit_status(FOUND) == 1
    assert verdict(FOUND) == "Doctor: do not trust this installation yet: 1 ok, 1 failure."
    warned = [FOUND[0], CheckResult("caches", Status.WARNING, "none"), FOUND[2]]
    assert exit_status(warned) == 0
    assert verdict(warned) == "Doctor: no check failed: 1 ok, 1 warning."


def test_table():
    lines = report.table(FOUND).splitlines()
    assert lines[0] == "ok       versions  Python 3.11.7"
    assert lines[1].startswith("failure  devices   JAX: ended by SIGABRT. word")
    assert [line.strip() for line in lines[-5:]] == [
        "-> First.",
        "Then.",
        "figure   figures   5 steps/s",
        "",
        verdict(FOUND),
    ]
    assert max(map(len, lines)) <= 100


def test_json():
    told = json.loads(report.as_json(FOUND))
    assert told["exit_status"] == 1
    assert told["verdict"] == verdict(FOUND)
    assert told["findings"][0] == {
        "check": "versions",
        "status": "ok",
        "text": "Python 3.11.7",
        "advice": "",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /somewhere/runs/a: lost", "in <model_dir>/a: lost"),
        (os.path.expanduser("~/.cache/x y"), "<home>/.cache/x y"),
        (f"{tempfile.gettempdir()}/doctor_1", "<temporary>/doctor_1"),
        (f'File "{sys.prefix}/lib/jax.py", line 3', 'File "<environment>/lib/jax.py", line 3'),
        ('File "/opt/secret/project/train.py"', 'File "<path>"'),
        ("error:/opt/secret/x, or /secret", "error:<path>, or <path>"),
        ("and/or 5 steps/s -> a~=2", "and/or 5 steps/s -> a~=2"),
        ("read gs://bucket/of/someone, twice", "read <address>, twice"),
        ("10.0.0.2:8470 takes no connection", "<address>:8470 takes no connection"),
        ("chief-of-all waits", "<host> waits"),
        (f"on {platform.node()} as {getpass.getuser()}.", "on <host> as <user>."),
        ("/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"),
        ("1967 steps/s, jax 0.10.2, libtpu 0.0.42", "1967 steps/s, jax 0.10.2, libtpu 0.0.42"),
        ("libtpu 0.0.32.1 is installed", "libtpu 0.0.32.1 is installed"),
    ],
)
def test_what_is_private(text, shown, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"chief": ["chief-of-all:2222"]}}')
    assert report.private(text, "/somewhere/runs") == shown


def test_markdown():
    found = [
        *FOUND,
        CheckResult("caches", Status.WARNING, f"a|b {os.path.expanduser('~')}/x", "<y>"),
    ]
    text = report.markdown(found, None)
    assert "| warning | caches | a\\|b &lt;home>/x | &lt;y> |" in text
    assert verdict(found) in text
    assert platform.node() not in text
    assert os.path.expanduser("~") not in text
