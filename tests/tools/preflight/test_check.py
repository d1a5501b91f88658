"""What a TPU does not take is found, with the user's line; the lines are marked in `models.py`."""

import inspect
import re

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.jax.lowering.findings import Kind, Severity
from tpu_estimator_compat.tools.preflight.report import Depth, Verdict

from . import models
from .asking import report

MARKS = {
    Severity.FAILS: re.compile(r"# fails:([\w ]*)"),
    Severity.MIGHT: re.compile(r"# might: ([\w ]*)"),
}


FAULTY = (
    models.strings,
    models.python,
    models.in_branches,
    models.tables,
    models.masked,
    models.not_constant,
    models.endless_loop,
    models.gradient_without_kernel,
    models.scalars,
    models.raises,
)


def marked(model_fn):
    """(severity, op, line number) of every mark in the source of `model_fn`."""
    lines, first = inspect.getsourcelines(model_fn)
    found = set()
    for number, line in enumerate(lines, first):
        for severity, mark in MARKS.items():
            if match := mark.search(line):
                ops = match[1].split() or [""]
                found |= {(severity, op, number) for op in ops}
    return found


@pytest.mark.parametrize("model_fn", FAULTY, ids=lambda f: f.__name__)
def test_every_marked_line_is_found_and_no_other(model_fn, tmp_path):
    found = report(model_fn, tmp_path).findings
    assert {(f.severity, f.op, f.source.line) for f in found} == marked(model_fn)
    for finding in found:
        assert finding.source.file == models.__file__
        assert finding.source.code in inspect.getsource(model_fn)


@pytest.mark.parametrize("model_fn", FAULTY, ids=lambda f: f.__name__)
def test_scan_finds_what_needs_no_lowering(model_fn, tmp_path):
    scanned = report(model_fn, tmp_path, depth="scan")
    lowered = report(model_fn, tmp_path)
    expected = [f for f in lowered.findings if "XLA refuses it" not in f.message]
    assert scanned.findings == expected
    assert scanned.reached in (Depth.SCAN, None)


def test_one_fault_does_not_hide_another_behind_it(tmp_path):
    def model_fn(features, labels, mode, params):
        twice = tf.numpy_function(lambda x: 2 * x, [features["x"]], tf.float32)
        twice.set_shape(features["x"].shape)
        kept = tf.boolean_mask(twice, labels > 1)
        again = tf.boolean_mask(kept, kept > 0)
        loss = tf.reduce_mean(models.logits_of(features)) + tf.reduce_sum(again)
        return models.spec(mode, loss)

    found = report(model_fn, tmp_path).findings
    assert [f.op for f in found] == ["PyFunc", "Where", "Where"]


def test_advice_says_what_to_write_instead(tmp_path):
    findings = [f for f in report(models.strings, tmp_path).findings if f.op]
    assert all(f.advice for f in findings)
    assert findings[0].kind is Kind.STRING


def test_certain_findings_come_first(tmp_path):
    def model_fn(features, labels, mode, params):
        mask = tf.boolean_mask(features["x"], labels > 0)
        text = tf.strings.to_number(tf.strings.as_string(tf.reduce_sum(mask)))
        return models.spec(mode, text + tf.reduce_mean(models.logits_of(features)))

    severities = [f.severity for f in report(model_fn, tmp_path).findings]
    assert severities == sorted(severities, key=[Severity.FAILS, Severity.MIGHT].index)
    assert len(set(severities)) == 2


def test_a_plain_step_is_lowered_and_nothing_is_claimed(tmp_path):
    found = report(models.plain, tmp_path)
    assert found.findings == []
    assert found.reached is Depth.LOWER
    assert found.verdict is Verdict.UNKNOWN
    assert "lower" in found.unknown


def test_nothing_is_written(tmp_path):
    report(models.plain, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def deep(features, labels, mode, params):
    """More than 5000 operations."""
    x = tf.tile(features["x"], [1, 4])
    for i in range(160):
        weights = tf.compat.v1.get_variable(f"layer_{i}/weights", [32, 32])
        x = x + tf.nn.gelu(x @ weights)
    return models.spec(mode, tf.reduce_mean(x))


@pytest.mark.slow
def test_before_the_compiler(tmp_path):
    report(models.plain, tmp_path)  # the first lowering of a process registers kernels
    found = [report(deep, tmp_path) for _ in range(3)]
    assert found[0].ops > 5000

    def share(part):
        """Of the time that capturing takes; other work on the machine only adds to it."""
        return min(each.seconds[part] / each.seconds["capture"] for each in found)

    assert share("scan") < 0.2
    assert share("lower") < 3  # most of it is XLA's own time
