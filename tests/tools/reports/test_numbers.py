import pytest

from tpu_estimator_compat.tools.reports import numbers


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (int(15.75 * 2**30), "15.75 GiB"),
        (2**40, "1.00 TiB"),
    ],
)
def test_sizes(number, said):
    assert numbers.size(number) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 100, "0%"),
        (1, 1000, "<1%"),
        (100, 100, "100%"),
        (10_000_001, 10_000_000, ">100%"),
        (9_999_999, 10_000_000, "<100%"),
        (1004, 1000, "100.4%"),
        (134, 100, "134%"),
    ],
)
def test_shares_never_round_across_the_limit(part, whole, said):
    assert numbers.share(part, whole) == said
