import pytest
from support.legacy_models import make_estimator


@pytest.fixture(autouse=True)
def quickly(quick_release):
    """All tests are about Keras' own loops."""


@pytest.fixture(params=[1, 2])
def estimator(request, tmp_path, strategy):
    return make_estimator(tmp_path, use_tpu=True, loop=3, train_distribute=strategy(request.param))
