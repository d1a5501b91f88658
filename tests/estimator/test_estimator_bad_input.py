import collections

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn


def test_a_limit_that_is_no_number(tmp_path):
    with pytest.raises(ValueError, match="max_steps > 0, given: nan"):  # the original never ended
        make_estimator(tmp_path).train(train_input_fn, max_steps=float("nan"))


def test_a_dataset_of_three_parts_in_predict(tmp_path):
    """A named tuple is not features either: the first of them alone would be."""
    parts = collections.namedtuple("parts", ["spec", "length", "name"])
    data = parts(*[np.zeros([4, 2], np.float32)] * 3)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    with pytest.raises(ValueError, match=r"len 2 tuple\. Got 3 elements"):
        next(estimator.predict(lambda params: tf.data.Dataset.from_tensor_slices(data).batch(2)))


def test_an_input_fn_that_returns_nothing_is_told(tmp_path, caplog):
    """Some model_fns make their own examples; this one does not."""
    with pytest.raises(ValueError, match="None"):
        make_estimator(tmp_path).train(lambda params: None, steps=1)
    assert "input_fn returned None" in caplog.text


def test_an_evaluator_may_not_train(tmp_path, monkeypatch):
    cluster = '{"cluster": {"chief": ["h:1"]}, "task": {"type": "evaluator", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", cluster)
    estimator = make_estimator(tmp_path)
    with pytest.raises(ValueError, match="Train has been called wrong configuration"):
        estimator.train(train_input_fn, steps=1)


def test_a_model_dir_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.raises((tf.errors.OpError, ValueError, OSError), match="file"):
        make_estimator(blocked / "model").train(train_input_fn, steps=1)
    assert blocked.read_text() == "not a directory"


def test_steps_refuse_parameter_servers(tmp_path, monkeypatch):
    cluster = '{"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": %s}'
    monkeypatch.setenv("TF_CONFIG", cluster % '{"type": "worker", "index": 0}')
    est = make_estimator(tmp_path, runtime="tensorflow")
    with pytest.raises(ValueError, match=r"1 parameter server\(s\)"):
        est.train(train_input_fn, steps=1)
    assert not list(tmp_path.glob("model*"))
