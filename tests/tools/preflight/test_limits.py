import dataclasses

from tpu_estimator_compat.tools.preflight import limits
from tpu_estimator_compat.tools.preflight.report import Depth

from .reports import FITS


def test_what_cannot_be_known_depends_on_the_depth():
    for depth in (None, *Depth):
        said = " ".join(limits.cannot_know(dataclasses.replace(FITS, reached=depth)))
        compiled = depth is Depth.COMPILE
        assert ("not compiled for the device" in said) is not compiled
        assert ("7% apart" in said) is compiled
        assert ("XLA kernels for the CPU" in said) is (depth is not None)
        assert ("a TPU has them" in said) is (depth is not None)
        assert ("not lowered" in said) is (depth is Depth.SCAN)
        assert ("could not be captured" in said) is (depth is None)
