"""The advice on files of model_dir: errors that get it, and errors that must not."""

import types

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.modes import training

errors = tf.errors
TOLD = [
    errors.NotFoundError(None, None, "m/events.out.tfevents.1; No such file or directory"),
    errors.PermissionDeniedError(None, None, "m/model.ckpt-0.index; Permission denied"),
    errors.ResourceExhaustedError(None, None, "m/model.ckpt-3.data; No space left on device"),
    errors.FailedPreconditionError(None, None, "m; Is a directory"),
    errors.UnknownError(None, None, "Failed to rename 'm/checkpoint.tmp' to 'm/checkpoint'"),
]
UNTOLD = [
    errors.InvalidArgumentError(None, None, "You must feed a value for placeholder 'm/x'"),
    errors.InvalidArgumentError(None, None, "m/logits is not finite"),
    errors.NotFoundError(None, None, "data/m/train.csv; No such file or directory"),
    errors.NotFoundError(None, None, "train.csv; No such file or directory [[{{node m_1}}]]"),
    errors.OutOfRangeError(None, None, "End of sequence"),
    errors.DeadlineExceededError(None, None, "Timed out waiting for a message"),
    errors.FailedPreconditionError(None, None, "Error while reading resource variable m_1/kernel"),
    errors.ResourceExhaustedError(None, None, "OOM when allocating tensor of shape [3,m]"),
    errors.UnknownError(None, None, "ValueError: my function failed"),
    errors.PermissionDeniedError(None, None, "/other/m/file; Permission denied"),
    errors.CancelledError(None, None, "Step was cancelled"),
    ValueError("m/model.ckpt-0 is of no interest"),
]


def notes(error, folder):
    captured = types.SimpleNamespace(config=types.SimpleNamespace(model_dir=folder))
    with pytest.raises(type(error)), training._noting_files(captured):
        raise error
    found, error.__notes__ = list(getattr(error, "__notes__", [])), []
    return found


@pytest.mark.parametrize("error", TOLD, ids=lambda error: error.message[:20])
@pytest.mark.parametrize("folder", ["m", "m/"])
def test_an_error_about_a_file_gets_advice(error, folder):
    assert "See that the disk has room" in notes(error, folder)[0]


@pytest.mark.parametrize("error", UNTOLD, ids=lambda error: str(error)[:20])
def test_another_error_gets_none(error):
    assert notes(error, "m") == []
