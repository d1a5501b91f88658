"""Optimizers of canned models: served names, and refusals."""

import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import optimizers


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"Unsupported optimizer name: Lion\. Supported names"):
        optimizers.get_optimizer_instance("Lion", 0.1)
    with pytest.raises(ValueError, match="learning_rate must be specified when opt is string"):
        optimizers.get_optimizer_instance("Adam")
    with pytest.raises(ValueError, match="not an Optimizer instance"):
        optimizers.get_optimizer_instance(lambda: 3)
