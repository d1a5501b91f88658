import json
import subprocess
import sys

import pytest

from tpu_estimator_compat.tools.preflight import compiler
from tpu_estimator_compat.tools.preflight.compiled import Error
from tpu_estimator_compat.tools.preflight.targets import tpu

from .. import stablehlo_modules as modules

NAMES = [
    "v2:1x1",
    "v2:2x2",
    "v3:2x2",
    "v3:4x4",
    "v4:1x1x1",
    "v4:2x2x1",
    "v4:2x2x2",
    "v5e:1x1",
    "v5e:1x2",
    "v5e:1x4",
    "v5e:2x2",
    "v5e:2x4",
    "v5e:4x4",
    "v5p:1x1x3",
    "v5p:2x2x1",
    "v6e:2x2",
    "v6e:2x4",
    "v6e:16x16",
    "tpu7x:2x2x1",
    "tpu7x:2x2x2",
]
NOT_DIVISIBLE = ["v5e:3x3", "v5e:2x3", "v5e:1x3", "v5p:3x2x1"]

ASK_LIBTPU = """
import dataclasses, json, pathlib, sys
from tpu_estimator_compat.tools.preflight import targets

answer = {}
for known, name in json.loads(sys.argv[1]):
    target = dataclasses.replace(targets.parse(known), name=name)
    try:
        devices = target.jax_devices(pathlib.Path(sys.argv[2]))
        answer[name] = [len(devices), len({d.process_index for d in devices})]
    except RuntimeError as error:
        answer[name] = str(error)
print(json.dumps(answer))
"""


def test_libtpu_agrees_about_devices_and_hosts(tmp_path):
    known = {name: tpu.parse(name) for name in NAMES}
    asked = [(name, name) for name in known] + [("v5e:2x2", name) for name in NOT_DIVISIBLE]
    done = subprocess.run(
        [sys.executable, "-c", ASK_LIBTPU, json.dumps(asked), str(tmp_path)],
        env=compiler.environment_of(known["v5e:2x2"]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    for name in NOT_DIVISIBLE:
        assert "is not divisible by" in said.pop(name)
    assert said == {name: [t.devices, t.hosts] for name, t in known.items()}


@pytest.mark.slow  # two processes of the compiler
@pytest.mark.parametrize(
    "name", ["v2:1x1", "v3:1x1", "v4:1x1x1", "v5e:1x1", "v5p:1x1x1", "v6e:1x1", "tpu7x:1x1x1"]
)
def test_libtpu_agrees_about_the_memory(compile_for, name):
    """One MiB less than `hbm` leaves room for the code; `hbm` itself does not."""
    hbm = tpu.parse(name).hbm
    found = [compile_for(modules.in_place(size), name).error for size in (hbm - 2**20, hbm)]
    assert found == [Error.NONE, Error.TOO_LARGE]


@pytest.mark.parametrize("name", NOT_DIVISIBLE)
def test_what_cannot_be_made_of_whole_hosts_is_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot be made of whole hosts.*divisible by 2"):
        tpu.parse(name)


def test_a_topology_says_what_there_is():
    v3 = tpu.parse("v3:4x4")

    assert (v3.name, v3.devices, v3.hosts, v3.chip_config) == ("v3:4x4", 32, 4, "")
    assert f"{v3.hbm / 2**30:.2f}" == "15.48"
    assert tpu.parse("v4:2x2x1").chip_config == "megacore"
    assert tpu.parse(" V5E:2x2 ") == tpu.parse("v5e:2x2")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("v2-8", "v2:2x2"),
        ("v3-8", "v3:2x2"),
        ("v3-32", "v3:4x4"),
        ("v4-8", "v4:2x2x1"),
        ("v5p-8", "v5p:2x2x1"),
        ("v5litepod-1", "v5e:1x1"),
        ("v5litepod-4", "v5e:2x2"),
        ("v5e-8", "v5e:2x4"),
        ("v6e-8", "v6e:2x4"),
        ("tpu7x-8", "tpu7x:2x2x1"),
    ],
)
def test_an_accelerator_type_is_refused_with_the_right_spelling(name, right):
    with pytest.raises(ValueError, match=rf"'{name}' is an accelerator type.*Write '{right}'"):
        tpu.parse(name)
    tpu.parse(right)


def test_the_number_in_a_name_may_count_tensorcores():
    with pytest.raises(ValueError, match="its 8 counts TensorCores, two on a chip"):
        tpu.parse("v4-8")
    with pytest.raises(ValueError, match="its 8 counts chips"):
        tpu.parse("v6e-8")


@pytest.mark.parametrize("name", ["v4-512", "v3-7", "v5p-1536"])
def test_ambiguous_accelerator_types_get_no_guess(name):
    with pytest.raises(ValueError, match="Write how the chips are arranged, such as v2:2x2"):
        tpu.parse(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v9:2x2", r"Unknown TPU generation in topology 'v9:2x2'\. Expected one of v2, v3"),
        ("", "Unknown TPU generation in topology ''"),
        ("v5litepod:2x2", "it is called 'v5e' here"),
        ("v7x:2x2x1", "it is called 'tpu7x' here"),
        ("v5e:2x2x1", r"'v5e:2x2x1' has 3 dimension\(s\).* arranged in 2.*'v5e:2x2'"),
        ("v4:2x2", r"'v4:2x2' has 2 dimension\(s\).* arranged in 3.*'v4:2x2x1'"),
        ("v5e:4", r"has 1 dimension\(s\)"),
        ("v5e", "does not say how the chips are arranged"),
        ("v5e:0x2", "does not say how the chips are arranged"),
        ("v5e:2x", "does not say how the chips are arranged"),
        ("v5e:-2x2", "does not say how the chips are arranged"),
    ],
)
def test_a_wrong_name_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        tpu.parse(name)
