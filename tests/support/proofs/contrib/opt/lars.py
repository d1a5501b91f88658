"""Proofs of LARS."""

import numpy as np
import pytest

from support.proofs import proves
from support.proofs.contrib.opt.steps import after

OPT = "tf.contrib.opt"


@proves(f"{OPT}.python.training.lars_optimizer")
def scales(module):
    values = np.array([1.0, 2.0, 3.0])
    w, g = np.linalg.norm(values), np.linalg.norm(2 * values)
    rate = 0.1 * 0.001 * w / (g + 0.0001 * w)
    expected = values - rate * (2 * values + 0.0001 * values)
    np.testing.assert_allclose(after(module.LARSOptimizer(0.1), 1), expected, rtol=1e-6)
    skipped = after(module.LARSOptimizer(0.1, momentum=0.0, skip_list=["v"]), 1)
    np.testing.assert_allclose(skipped, 0.8 * values, rtol=1e-6)
    with pytest.raises(ValueError, match="momentum should be positive"):
        module.LARSOptimizer(0.1, momentum=-1.0)
