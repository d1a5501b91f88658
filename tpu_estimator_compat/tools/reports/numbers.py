"""Bytes, operations, differences and shares as people write them."""

from __future__ import annotations

_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECONDS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def size(number: int) -> str:
    """Bytes in the unit that fits, of powers of 1024.

    >>> size(512), size(3 * 2**20), size(1303564288)
    ('512 bytes', '3.0 MiB', '1.21 GiB')
    """
    value, unit = _scaled(number, 1024, _BINARY)
    if unit == "bytes":
        return f"{number:,} {'byte' if number == 1 else 'bytes'}"
    return f"{value:.1f} {unit}" if unit in ("KiB", "MiB") else f"{value:.2f} {unit}"


def flops(number: float) -> str:
    """Floating-point operations, in powers of 1000: a count, not a rate.

    >>> flops(2.25e12), flops(640)
    ('2.25 TFLOPs', '640 FLOPs')
    """
    value, prefix = _scaled(number, 1000, _DECIMAL)
    return f"{value:.2f} {prefix}FLOPs" if prefix else f"{number:,.0f} FLOPs"


def duration(seconds: float) -> str:
    """A short time in the unit that fits, to three digits.

    >>> duration(0.0123), duration(1.5e-9), duration(2)
    ('12.3 ms', '1.5 ns', '2 s')
    """
    unit, factor = next((u for u in _SECONDS if seconds * u[1] >= 1), _SECONDS[-1])
    return f"{seconds * factor:.3g} {unit}"


def difference(number: float) -> str:
    """A relative difference, of which the magnitude matters.

    >>> difference(0.08877)
    '8.9e-02'
    """
    return f"{number:.1e}"


def count(number: int) -> str:
    """A whole number with a comma after each three digits.

    >>> count(110106428)
    '110,106,428'
    """
    return f"{number:,}"


def share(part: int, whole: int) -> str:
    """A percentage, with decimals only where they tell one side of 100% from the other.

    >>> share(3, 16), share(1, 1000), share(1002, 1000)
    ('19%', '<1%', '100.2%')
    """
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "<1%"
    if part != whole and round(percent) == 100:
        # A share just above 100% must not read as one just below.
        hair = ">100%" if part > whole else "<100%"
        return f"{percent:.1f}%" if abs(percent - 100) >= 0.05 else hair
    return f"{percent:.0f}%"


def _scaled(number: float, base: int, units: tuple[str, ...]) -> tuple[float, str]:
    """The number in the largest unit in which it is at least 1 when shown with one decimal."""
    value = float(number)
    for unit in units[:-1]:
        if abs(value) < base - 0.05:
            return value, unit
        value /= base
    return value, units[-1]
