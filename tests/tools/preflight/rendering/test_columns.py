"""Columns that have no room beside each other."""

import dataclasses
import re

from tpu_estimator_compat.tools.preflight.rendering.table import table

from ..reports import FITS


def test_columns_without_room_go_below_with_their_own_header():
    many = [dataclasses.replace(FITS, topology=f"v5e:{2 * n}x{2 * n}") for n in range(1, 9)]
    lines = table(many, 80).splitlines()
    assert sum(line.startswith("verdict") for line in lines) > 1
    header = [line for line in lines if re.fullmatch(r"(\s+v5e:\d+x\d+)+", line)]
    assert " ".join(header).split() == [report.topology for report in many]
