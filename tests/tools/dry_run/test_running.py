from tpu_estimator_compat.tools.dry_run.report import Call
from tpu_estimator_compat.tools.dry_run.running import not_reached

SOURCE = """
def main():
    estimator.train(
        input_fn,
        steps=2,
    )
    tf.estimator.train_and_evaluate(estimator, a, b)
    optimizer = tf.train.AdamOptimizer(0.1)
    print(estimator.evaluate(input_fn))
    train(estimator)
"""


def test_calls_by_the_lines_that_they_span(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SOURCE)
    calls = [Call("train", str(script), 5)]
    found = not_reached([str(script), str(script)], calls)
    assert [(each.call, each.line) for each in found] == [
        ("train_and_evaluate", 7),
        ("evaluate", 9),
    ]


def test_files_that_are_no_python_3_have_none(tmp_path):
    (tmp_path / "notebook.ipynb").write_text('{"cells": [')
    assert not_reached([str(tmp_path / "notebook.ipynb"), str(tmp_path / "missing.py")], []) == ()


def test_python_2_is_read_as_migrate_reads_it(tmp_path):
    (tmp_path / "old.py").write_text("print 'x'\nestimator.predict(f)\n")
    [found] = not_reached([str(tmp_path / "old.py")], [])
    assert (found.call, found.line) == ("predict", 2)
