import json
import sys

import pytest

from tpu_estimator_compat import __main__
from tpu_estimator_compat.tools.compare import comparing, environment
from tpu_estimator_compat.tools.compare.report import Report
from tpu_estimator_compat.tools.compare.showing import shown

from .evidences import changed, evidence, judged


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("print('nothing')\n")
    return str(path)


def compare(*arguments: str) -> int:
    return __main__.main(["compare", *arguments])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--original-python", "/no/such/python"], "--original-python=/no/such/python is not an"),
        (["--checkpoint", "/no/model.ckpt-1"], "there is no file /no/model.ckpt-1.index"),
        (["--new-script", "/no/such.py"], "--new-script /no/such.py: there is no such file"),
        (["--against", "tf", "--new-script", __file__], "both sides run with this package."),
        (["--dirs"], "--dirs takes two folders"),
        (["--html", "/no/such/page.html"], "No such file or directory: '/no/such/page.html'"),
    ],
)
def test_refused(capsys, script, options, words):
    assert compare(*options, script) == 2
    assert words in capsys.readouterr().err


def test_no_such_script(capsys):
    assert compare("/no/such/script.py") == 2
    assert "/no/such/script.py" in capsys.readouterr().err


def test_steps_must_be_positive(capsys, script):
    with pytest.raises(SystemExit):
        compare("--steps", "0", script)
    assert "expected a positive number of steps, got '0'" in capsys.readouterr().err


def test_environment_that_cannot_be_made(capsys, script, monkeypatch):
    def unavailable(*_: object, **__: object) -> str:
        raise environment.Unavailable("TensorFlow 1.15.5 needs python3.7, and none is on PATH.")

    monkeypatch.setattr(environment, "find_or_make", unavailable)
    assert compare("--original", "1.15", script) == 2
    assert "needs python3.7" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "json"])
def test_prints_the_report(capsys, script, monkeypatch, form):
    report = judged(changed("variables", **{"dense/bias": evidence().start["dense/bias"]}))
    monkeypatch.setattr(comparing, "with_original", lambda *_: report)
    options = ["--json"] if form == "json" else []
    assert compare("--original-python", sys.executable, *options, script) == 1
    printed = capsys.readouterr().out
    if form == "json":  # without the folders of the runs, which are deleted
        assert Report.from_json(printed) == report.without_folders()
        assert json.loads(printed)["verdict"] == "diverges"
    else:
        assert printed.startswith("Compare: diverges from step 3 on")
        assert "variables     dense/bias" in printed


def test_writes_a_page_besides(capsys, script, monkeypatch, tmp_path):
    report = judged(evidence())
    monkeypatch.setattr(comparing, "with_original", lambda *_: report)
    written = tmp_path / "report.html"
    assert compare("--original-python", sys.executable, "--html", str(written), script) == 0
    assert capsys.readouterr().out == shown(report).text() + "\n"
    assert written.read_text() == shown(report.without_folders()).page()
