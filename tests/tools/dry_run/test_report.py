import pytest

from tpu_estimator_compat.tools.dry_run.report import Call, NotReached, Report, told

CALLS = (
    Call("train", "a.py", 3, "model_fn", 2, 2, 1.234, 0.5, ("m/model.ckpt-2",), ("Hook",)),
    Call("evaluate", "a.py", 4, "model_fn", 2, 1, 0.5, None, error="ValueError: bad", repeated=0),
    Call("predict", "a.py", 5, "model_fn", 2, 1, 0.5, repeated=7),
)
MISSED = (NotReached("export_saved_model", "a.py", 9),)


def test_the_table_says_all_of_it():
    text = told(Report(2, CALLS, MISSED)).text(100)
    head, first, second, third, *rest = text.splitlines()
    assert head.split() == ["call", "where", "model_fn", "replicas", "steps", "time", "loss"]
    assert first.split() == ["train", "a.py:3", "model_fn", "2", "2", "1.23", "s", "0.5"]
    assert second.split()[-1] == "failed"
    assert third.endswith("+7 not run")
    below = " ".join(rest)
    for words in ("wrote m/model.ckpt-2", "called Hook", "failed: ValueError: bad"):
        assert words in below
    assert "exit status 2. Not reached: export_saved_model (a.py:9)." in below


def test_without_calls():
    assert (
        told(Report(1)).text(100).startswith("Dry run: the script reached no call of an estimator")
    )


@pytest.mark.parametrize("report", [Report(None), Report(1, CALLS, MISSED, "It waited.")])
def test_json_and_back(report, tmp_path):
    assert Report.from_json(report.to_json()) == report
    report.write(str(tmp_path / "report.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
