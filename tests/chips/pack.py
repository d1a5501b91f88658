"""Prepares a record on a machine that has a GPU and JAX, and reaches no package index.

    python tests/chips/pack.py steps      # saved steps; a run of five minutes
    python tests/chips/pack.py package    # this package and all that it requires, in parts
    python tests/chips/pack.py collect DIR FILE   # what both said there -> tests/chips/DEVICE.json

Both payloads are made in advance, here, below tests/chips/packed/, which git ignores. `steps` needs
the extra preflight-gpu. On the machine, from the root of this repository:

    bash tests/chips/packed/steps/run_all.sh DIR
    python3 tests/chips/packed/package/0/unpack.py    # then 1, 2, ...
    PYTHONPATH=/tmp/packed/site python3 tests/chips/record.py --minutes 6 --out FILE
"""

import argparse
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)

from chips import record  # noqa: E402

PACKED = HERE / "packed"
STEPS = {"convnet": (256, 40), "bert_base": (32, 110), "encoder": (64, 40), "resnet50": (64, 110)}
"""Batch size and seconds of each model, the most important first: 300 seconds in all."""

SMALL = {"convnet": (8, 60), "encoder": (8, 60)}
TOPOLOGIES = "h100:1,h200:1"

PYTHON = "3.12"
PLATFORMS = [f"manylinux{name}_x86_64" for name in ("_2_28", "_2_27", "_2_17", "2014", "1")]
PRESENT = (
    "jax",
    "jaxlib",
    "libtpu",
    "numpy",
    "scipy",
    "ml-dtypes",
    "opt-einsum",
    "grpcio",
    "pillow",
    "matplotlib",
    "contourpy",
    "fonttools",
    "kiwisolver",
    "pandas",
    "scikit-learn",
    "joblib",
    "threadpoolctl",
    "pyarrow",
    "setuptools",
    "pip",
    "wheel",
    "psutil",
    "requests",
    "urllib3",
    "certifi",
    "charset-normalizer",
    "idna",
    "pygments",
    "markdown",
    "markdown-it-py",
    "mdurl",
    "tqdm",
)
"""Packages that the machine has, whose version does not matter; others are carried."""

NEEDLESS = ["libclang"]  # TensorFlow requires it and does not import it
PART = 48 * 2**20


def steps(models: dict[str, tuple[int, int]], topologies: str) -> pathlib.Path:
    """Saves the steps, with preflight's estimates of their memory, and the script that runs all."""
    folder = _new("steps")
    runs = record.Runs(folder, topologies, [], 1)
    for model, (batch, _) in models.items():
        runs.save(folder / model, model, batch)
    order = [f"{model} {seconds}" for model, (_, seconds) in models.items()]
    (folder / "order").write_text("\n".join(order) + "\n")
    shutil.copy(HERE / "run_all.sh", folder)
    return folder


def requirements(package: str, present: Sequence[str]) -> dict[str, str]:
    """Versions, by name, of what an installed package requires and the machine does not have."""
    skipped = {canonicalize_name(name) for name in [*present, *NEEDLESS]}
    found: dict[str, str] = {}
    waiting = [Requirement(package)]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in skipped or (name in found and not wanted.extras):
            continue
        found[name] = metadata.version(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            extras = wanted.extras or {""}
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    del found[canonicalize_name(Requirement(package).name)]  # the repository has it
    return found


def package(part: int = PART) -> pathlib.Path:
    """Installs the requirements for the machine's Python, and packs them in parts."""
    folder = _new("package")
    wanted = requirements("tpu_estimator_compat[examples]", PRESENT)
    wanted["tensorflow-cpu"] = wanted.pop("tensorflow")
    site = folder / "site"
    words = [sys.executable, "-m", "pip", "install", "--target", str(site), "--no-deps"]
    words += ["--no-compile", "--only-binary=:all:", "--python-version", PYTHON]
    words += [word for name in PLATFORMS for word in ("--platform", name)]
    compiled = {name: version for name, version in wanted.items() if not _is_pure(name)}
    subprocess.run([*words, *(f"{name}=={of}" for name, of in compiled.items())], check=True)
    for name in wanted.keys() - compiled.keys():
        _copy(name, site)
    compressed(site, folder / "all")
    split(folder / "all", folder, part)
    shutil.rmtree(site)
    return folder


def _is_pure(name: str) -> bool:
    """Whether a package is installed here, and the same for all versions of Python."""
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        return False
    return not any(file.suffix == ".so" for file in files)


def _copy(name: str, site: pathlib.Path) -> None:
    """Copies an installed package; some have no wheel in the index."""
    for file in metadata.files(name) or []:
        if ".." not in file.parts and file.suffix != ".pyc":
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), site / file)


def compressed(site: pathlib.Path, target: pathlib.Path) -> None:
    """Packs a folder in the smallest form that Python reads: TensorFlow's wheel is 270 MB."""
    filters = [
        {"id": lzma.FILTER_X86},
        {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**26},
    ]
    with (
        lzma.open(target, "wb", filters=filters) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        tar.add(site, "site", filter=_needed)


def _needed(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """None for headers, which only a compiler reads."""
    return None if re.search(r"/tensorflow/include$", info.name) else info


def split(path: pathlib.Path, folder: pathlib.Path, size: int) -> None:
    """Cuts a file into numbered folders, each with the script that puts them together."""
    count = -(-path.stat().st_size // size)
    with path.open("rb") as file:
        for number in range(count):
            (folder / str(number)).mkdir()
            (folder / str(number) / f"{number}.of.{count}").write_bytes(file.read(size))
            shutil.copy(HERE / "unpack.py", folder / str(number))
    path.unlink()


def collect(results: pathlib.Path, given: pathlib.Path | None) -> pathlib.Path:
    """Writes one record from the results of `run_all.sh` and the file of `record.py`."""
    found = json.loads(given.read_text()) if given else {"machine": {}, "parts": {}}
    found["machine"] |= json.loads((results / "machine.json").read_text())
    found["saved_steps"] = {}
    watched = list(_watched(results / "gpu.csv"))
    for path in sorted(results.glob("*.result.json")):
        model = path.name.split(".")[0]
        busy = sorted(percent for of, percent in watched if of == model)
        # The script compiles and compares before and after the timed loops: the busiest tenth.
        utilization = busy[-max(1, len(busy) // 10)] if busy else None
        found["saved_steps"][model] = {
            **json.loads(path.read_text()),
            "gpu_utilization_percent": utilization,
        }
    out = record.file_of(found["machine"]["device"])
    out.write_text(json.dumps(found, indent=1) + "\n")
    return out


def _watched(path: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Model and GPU utilization, in percent, of each line that nvidia-smi wrote."""
    for line in path.read_text().splitlines() if path.exists() else []:
        model, percent = re.match(r"(\w+),\s*(\d+)", line + ",").groups()
        yield model, int(percent)


def _new(name: str) -> pathlib.Path:
    folder = PACKED / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["steps", "package", "collect"])
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="of collect")
    parser.add_argument("--small", action="store_true", help="steps for CPUs, without estimates")
    given = parser.parse_args()
    if given.what == "collect":
        results, *file = given.paths
        print(f"The record is in {collect(results, file[0] if file else None)}.")
        return
    if given.what == "steps":
        made = steps(*((SMALL, "") if given.small else (STEPS, TOPOLOGIES)))
    else:
        made = package()
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    print(f"{os.path.relpath(made)}: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
