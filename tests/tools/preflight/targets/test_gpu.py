"""The table of GPUs: which names it takes, what memory they have, and when a step fits."""

import configparser
import dataclasses
import pathlib

import pytest

from tpu_estimator_compat import environment
from tpu_estimator_compat.tools.preflight import targets
from tpu_estimator_compat.tools.preflight.compiled import Compiled, Error
from tpu_estimator_compat.tools.preflight.report import Memory, Verdict
from tpu_estimator_compat.tools.preflight.targets import gpu

from ..reports import FITS

GIB = 2**30
ROOT = pathlib.Path(__file__).parents[4]


def test_a_name_says_what_there_is():
    h100 = targets.parse("h100:8")
    assert (h100.name, h100.kind, h100.devices, h100.hosts) == ("h100:8", "GPU", 8, 1)
    assert h100.hbm / GIB == pytest.approx(0.75 * 79.11, abs=0.01)
    assert h100.fits_below == pytest.approx(0.85 * h100.hbm, abs=1)
    assert targets.parse(" H100:8 ") == h100
    several = targets.parse("a100-80:16")
    assert (several.devices, several.hosts) == (16, 2)
    assert targets.parse("t4:1", 1.0).hbm == 15642329088
    assert targets.parse("v5e:2x2").kind == "TPU"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h100", "'h100' has no valid number of GPUs. Expected 1 to 8.*'h100:8'"),
        ("h100:0", "no valid number"),
        ("h100:2x2", "no valid number"),
        ("h100:12", "a multiple of 8 for several hosts"),
        ("h1000:1", "Unknown TPU generation in topology 'h1000:1'.*such as h100:8: t4, v100, a10"),
        ("a100:1", "a100-40, a100-80"),
    ],
)
def test_a_wrong_name_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        targets.parse(name)


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan")])
def test_a_wrong_share_is_refused(share):
    with pytest.raises(ValueError, match="above 0 and at most 1, got"):
        targets.parse("h100:1", share)


def test_every_card_has_every_figure():
    # What the box says, in GB: the driver reports less.
    box = {"t4": 16, "v100": 16, "a10": 24, "l4": 24, "a100-40": 40, "a100-80": 80, "l40s": 48}
    box |= {"h100": 80, "h200": 141, "b200": 192}
    assert set(gpu.cards()) == set(box)
    for name, card in gpu.cards().items():
        assert all(card.values()), name
        assert 0.9 * box[name] < int(card["memory in bytes"]) / 1e9 < 1.08 * box[name], name
        # Of products of 16-bit floats, more than of those of 32 bits outside the tensor cores.
        lanes = int(card["multiprocessors"]) * int(card["lanes"])
        plain = 2 * lanes * float(card["clock in GHz"]) / 1e3
        assert plain < float(card["peak in TFLOP/s"]) < 40 * plain, name


def test_the_guide_has_the_table():
    page = (ROOT / "migration_guide" / "preflight.md").read_text()
    shown = [
        f"| `{name}` | {card['device']} | {int(card['memory in bytes']) / GIB:.1f} GiB | "
        f"{float(card['bandwidth in GB/s']):,.0f} GB/s | "
        f"{float(card['peak in TFLOP/s']):,.0f} TFLOP/s |"
        for name, card in gpu.cards().items()
    ]
    assert "\n".join(shown) in page


def report_on(used, target):
    return dataclasses.replace(
        FITS,
        topology=target.name,
        hbm=target.hbm,
        memory=Memory(used, 0, 0, 0, 0),
        kind=target.kind,
        memory_share=target.memory_share,
        fits_below=target.fits_below,
        peak_flops=target.peak_flops,
    )


def test_close_is_no_fit():
    target = targets.parse("t4:1")
    report = report_on(target.fits_below, target)
    assert (report.verdict, report.verdict_in_words) == (Verdict.FITS, "fits with room")
    report = report_on(target.fits_below + 1, target)
    assert (report.verdict, report.verdict_in_words) == (Verdict.CLOSE, "close: may not fit")
    assert report.verdict.exit_code == 2
    assert Verdict.worst([Verdict.FITS, report.verdict]) is Verdict.CLOSE


def test_what_is_larger_than_what_jax_takes_is_too_large():
    target = targets.parse("t4:1")

    def judged(used):
        return target.judged(Compiled(memory=Memory(used, 0, 0, 0, 0)))

    assert judged(target.hbm).error is Error.NONE
    over = judged(target.hbm + 1)
    assert (over.error, over.needed, over.available) == (
        Error.TOO_LARGE,
        target.hbm + 1,
        target.hbm,
    )
    refused = Compiled(error=Error.REFUSED, message="no")
    assert target.judged(refused) is refused


def test_the_lower_bound_of_a_step_is_its_flops_at_the_peak():
    report = dataclasses.replace(report_on(GIB, targets.parse("h100:1")), flops=989e9)
    assert report.least_seconds == pytest.approx(1e-3)
    assert dataclasses.replace(report, flops=None).least_seconds is None


def test_the_extra_installs_what_is_asked_for():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = config["options.extras_require"]["preflight-gpu"].splitlines()
    pinned = [f"{package}=={release}" for package, release in gpu.GpuTarget.packages.items()]
    assert [line for line in listed if line and not line.startswith("#")] == pinned
    assert list(environment.EXTRAS["preflight-gpu"]) == pinned
