"""Faults are survived by what users have, and not by what makes tests fast."""

import pytest

from tpu_estimator_compat import environment


@pytest.fixture(scope="package", autouse=True)
def synced_files():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(environment.SYNC_VARIABLE, raising=False)
        yield
