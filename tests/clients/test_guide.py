"""The pages of the guide that run scripts: every command and every block of code on them."""

import re

import pytest
import tensorflow as tf

from . import text
from .guide import GUIDE, walk


@pytest.mark.slow
def test_run(tmp_path, clients):
    printed = walk("run.md", tmp_path, clients)
    assert "Saving dict for global step 200" in printed[0]
    assert "on 2 local replica(s)" in printed[1]
    assert "Dry run: 2 calls of estimators, 0 failed; exit status 0." in printed[2]
    assert "1 passed" in printed[3]
    assert "1 passed" in printed[-1]
    assert tf.train.latest_checkpoint(str(tmp_path / "old_model")).endswith("model.ckpt-250")


@pytest.mark.full
def test_bert(tmp_path, clients):
    text.write_text(tmp_path / "text.txt")
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_config(tmp_path / "config.json", len((tmp_path / "vocab.txt").read_text().split()))
    text.write_mrpc(tmp_path)
    _, _, scanned, shown, went_on, _ = walk("bert.md", tmp_path, clients)
    assert "tensorflow.contrib" in scanned or "tf.contrib" in scanned
    assert "+import tpu_estimator_compat.v1 as tf" in shown
    assert "model.ckpt-8" in went_on
    assert "tensorflow.contrib" not in (tmp_path / "mine" / "modeling.py").read_text()
    assert tf.train.latest_checkpoint(str(tmp_path / "classifier")).endswith("model.ckpt-32")


@pytest.mark.slow
def test_migrate(tmp_path, clients):
    scanned, listed, shown, written, trained = walk("migrate.md", tmp_path, clients)
    assert "old.py:3   tf.contrib.tpu" in scanned
    assert '"refused": 1' in listed
    assert "-import tensorflow as tf" in shown
    assert "Rewrote old.py" in written
    assert "old.py:5  tf.estimator.BoostedTreesRegressor  refused" in written
    assert "Loss for final step" in trained
    assert tf.train.latest_checkpoint(str(tmp_path / "old_model")).endswith("model.ckpt-50")


@pytest.mark.slow
def test_testing(tmp_path, clients):
    failed, passed = walk("testing.md", tmp_path, clients)
    assert "4 failed" in failed
    page = (GUIDE / "testing.md").read_text()
    [shown] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    printed = [line.removeprefix("E").strip() for line in failed.splitlines()]
    for line in shown.splitlines():
        assert line.strip() in [*printed, ""] or "AssertionError: " + line in printed
    assert passed.count("11 passed") == 2
    assert (tmp_path / "golden" / "test_mended" / "test_losses.json").exists()


@pytest.mark.full
def test_preflight(tmp_path, clients, with_gpu_compiler, monkeypatch):
    """The reports on the page are those that the commands print."""
    monkeypatch.setenv("COLUMNS", "80")
    printed = walk("preflight.md", tmp_path, clients)
    page = (GUIDE / "preflight.md").read_text()
    shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    red, green, _, gpus, in_python = printed
    assert [lines_of(text) for text in shown] == [lines_of(text) for text in (red, green, gpus)]
    assert "compiles and fits on v5e:2x2, v5p:2x2x1" in in_python
    assert "By layer" in (tmp_path / "spam.html").read_text()
    assert tf.train.latest_checkpoint(str(tmp_path / "spam")).endswith("model.ckpt-200")


@pytest.mark.full
def test_compare(tmp_path, clients, original):
    """The page's reports say what the commands print, but for speeds."""
    green, _, red, dirs = walk("compare.md", tmp_path, clients)
    page = (GUIDE / "compare.md").read_text()
    shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for text_of_page, printed in zip(shown, (green, red), strict=True):
        assert verdicts(text_of_page) == verdicts(printed)
    # Event files have the losses of those steps alone that were summarised: here the first.
    assert "Compare: same over 1 step\n" in dirs
    assert not (tmp_path / "old_model").exists()


def verdicts(printed: str) -> list[str]:
    report = "Compare: " + printed.rpartition("Compare: ")[2]
    head, _, rest = report.partition("largest")
    table = rest.partition("\n\n")[0]
    return [head.strip(), *(re.sub(r"\S+e[+-]\d+", "", line) for line in table.splitlines()[1:])]


def lines_of(printed: str) -> list[str]:
    report = "Preflight: " + printed.rpartition("Preflight: ")[2].rstrip()
    varying = ("this check took", "from the cache")
    return [line for line in report.splitlines() if not line.startswith(varying)]
