import importlib.util

import pytest

from support.proofs import proves

CONTRIB = "tf.contrib"


@proves(f"{CONTRIB}.gan")
def is_a_package_of_its_own(gan):
    """With the package: `tests/old_names/contrib/test_gan.py`, and `tests/clients/test_gan.py`."""
    if importlib.util.find_spec("tensorflow_gan") is None:
        with pytest.raises(ImportError, match="Install tensorflow-gan"):
            _ = gan.estimator
    else:
        assert gan.estimator.GANEstimator
