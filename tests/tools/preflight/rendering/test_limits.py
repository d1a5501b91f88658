import dataclasses

import pytest

from tpu_estimator_compat.tools.preflight.rendering import limits
from tpu_estimator_compat.tools.preflight.rendering.table import table
from tpu_estimator_compat.tools.preflight.report import Depth

from ..reports import FITS, UNKNOWN, sampled
from ..showing import plain, text_of_json, text_of_page, text_of_table

ways = pytest.mark.parametrize(
    "said", [text_of_table, text_of_json, text_of_page], ids=["table", "json", "page"]
)


@sampled
@ways
def test_what_cannot_be_known_is_said(reports, said):
    text = said(reports)
    assert "Nothing was run on such a device" in text
    for report in reports:
        for sentence in limits.cannot_know(report):
            assert sentence in text


def test_what_cannot_be_known_depends_on_the_depth():
    at = {
        depth: " ".join(limits.cannot_know(dataclasses.replace(FITS, reached=depth)))
        for depth in (None, *Depth)
    }
    for depth, said in at.items():
        compiled = depth is Depth.COMPILE
        assert ("not compiled for the device" in said) is not compiled
        assert ("7% apart" in said) is compiled
        assert ("XLA kernels for the CPU" in said) is (depth is not None)
        assert ("a TPU has them" in said) is (depth is not None)
        assert ("not lowered" in said) is (depth is Depth.SCAN)
        assert ("could not be captured" in said) is (depth is None)


def test_sentences_on_some_reports_name_them():
    text = plain(table([FITS, UNKNOWN]))
    assert "v5e:2x2: The memory is an estimate" in text
    assert "v5p:2x2x1: The step was not compiled" in text
    assert "- Nothing was run on such a device" in text
