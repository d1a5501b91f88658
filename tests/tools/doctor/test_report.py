import getpass
import json
import os
import platform
import sys
import tempfile

import pytest

from tpu_estimator_compat.tools.doctor import report
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

FOUND = [
    CheckResult("versions", Status.OK, "Python 3.11.7"),
    CheckResult(
        "devices", Status.FAILURE, "JAX: ended by SIGABRT. " + "word " * 30, "First.\n  Then."
    ),
    CheckResult("figures", Status.FIGURE, "5 steps/s"),
]


VERDICT = "Doctor: do not trust this installation yet: 1 ok, 1 failure."


def test_text():
    lines = report.document(FOUND).text(100).splitlines()
    assert lines[0] == "ok       versions  Python 3.11.7"
    assert lines[1].startswith("failure  devices   JAX: ended by SIGABRT. word")
    assert [line.strip() for line in lines[-5:]] == [
        "-> First.",
        "Then.",
        "figure   figures   5 steps/s",
        "",
        VERDICT,
    ]
    assert max(map(len, lines)) <= 100


def test_json():
    told = json.loads(report.document(FOUND).json())
    assert list(told) == ["findings", "verdict", "exit_status"]
    assert (told["verdict"], told["exit_status"]) == (VERDICT, 1)
    assert told["findings"][0] == {
        "check": "versions",
        "status": "ok",
        "text": "Python 3.11.7",
        "advice": "",
    }


def test_a_warning_is_no_failure():
    warned = [FOUND[0], CheckResult("caches", Status.WARNING, "none"), FOUND[2]]
    told = json.loads(report.document(warned).json())
    assert told["exit_status"] == 0
    assert told["verdict"] == "Doctor: no check failed: 1 ok, 1 warning."


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
    assert VERDICT.replace("1 failure", "1 warning, 1 failure") in text
    assert platform.node() not in text
    assert os.path.expanduser("~") not in text
