"""The environment before TensorFlow is imported: installed packages, variables that users set."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys

# Each of these brings the module `tensorflow`, and pip lets them overwrite each other's files.
DISTRIBUTIONS = ("tensorflow", "tensorflow-tpu", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly")

LIBTPU = "0.0.24"
"""The libtpu that this package is tried with beside tensorflow-tpu 2.20.0."""

_LAST_LIBTPU = (0, 0, 31)
"""The newest one with which `import tensorflow` does not end the process; 0.0.32.1 does."""

_JAX = ("jax>=0.10.2,<0.13", "jaxlib>=0.10.2,<0.13")
EXTRAS = {
    "jax": _JAX,
    "migrate": ("libcst>=1.5",),
    "preflight": (*_JAX, "libtpu==0.0.51"),
    "preflight-gpu": (
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "jax-cuda12-pjrt==0.10.2",
        "jax-cuda12-plugin==0.10.2",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ),
}
"""The packages of each extra, as setup.cfg has them."""

ESTIMATOR_PACKAGE = "tensorflow-estimator==2.15.0"
"""The release whose canned models are used."""

_REQUIRED = {"absl", "keras", "numpy", "tensorboard", "tensorflow", "tf_keras", "tf_slim"}


def pip_line(extra: str) -> str:
    """The pip command that installs the packages of an extra, and nothing else.

    For an extra, pip collects what this package itself asks for, too, and so puts tensorflow beside
    tensorflow-tpu.
    """
    return "pip install " + " ".join(f"'{package}'" for package in EXTRAS[extra])


def explained(error: ModuleNotFoundError) -> str:
    """Advice on an error about a missing package that this one needs; empty for any other."""
    if error.name and error.name == os.environ.get("KERAS_BACKEND"):
        return (
            f"KERAS_BACKEND is {error.name!r}, which Keras imports and which is not there. Unset "
            "it, or set it to tensorflow, on which estimators and their keras_model() run."
        )
    if (error.name or "").partition(".")[0] not in _REQUIRED:
        return ""
    return (
        f"No module named {error.name!r} in the environment of {sys.executable}. Activate the "
        "environment in which this package is installed with all that it needs, such as "
        "`source .venv/bin/activate`, or install the package in this one with pip."
    )


def version() -> str:
    """The installed version of this package; "unknown" where it runs without being installed."""
    found = _distribution("tpu_estimator_compat")
    return found.version if found else "unknown"


def tensorflow() -> str:
    """The installed distribution of TensorFlow and its version, in words."""
    found = [f"{name} {dist.version}" for name in DISTRIBUTIONS if (dist := _distribution(name))]
    return ", ".join(found) or "no tensorflow"


RUNTIME_VARIABLE = "TPU_ESTIMATOR_COMPAT_RUNTIME"
TENSORFLOW, JAX, AUTO = RUNTIMES = ("tensorflow", "jax", "auto")


def runtime() -> str:
    """The runtime that `RUNTIME_VARIABLE` names; "auto" where it is not set."""
    return os.environ.get(RUNTIME_VARIABLE) or AUTO


EXECUTOR_VARIABLE = "TPU_ESTIMATOR_COMPAT_EXECUTOR"


def allows_single_threaded_executor() -> bool:
    """Whether small steps may run on TensorFlow's single-threaded executor."""
    return os.environ.get(EXECUTOR_VARIABLE) != "default"


PROFILE_VARIABLE = "TPU_ESTIMATOR_COMPAT_PROFILE"


def profile_folder() -> str | None:
    """The folder of a profile of some steps; None for no profile."""
    return os.environ.get(PROFILE_VARIABLE) or None


SYNC_VARIABLE = "TPU_ESTIMATOR_COMPAT_FSYNC"


def syncs_files() -> bool:
    """Whether files of checkpoints and exports are on the disk before anything names them."""
    return os.environ.get(SYNC_VARIABLE) not in ("0", "off")


SECRET_VARIABLE = "TPU_ESTIMATOR_COMPAT_CLUSTER_SECRET"


def cluster_secret() -> str:
    """The secret that all workers of a cluster must have before they join; empty for none."""
    return os.environ.get(SECRET_VARIABLE, "")


CACHE_VARIABLE = "TPU_ESTIMATOR_COMPAT_CACHE_GB"
_CACHE_GB = 2.0


def cache_limit() -> int:
    """The largest size of all cached files, in bytes: the value of `CACHE_VARIABLE`, or 2 GB.

    Raises:
      ValueError: it is no number, or negative.
    """
    given = os.environ.get(CACHE_VARIABLE)
    try:
        gigabytes = float(given) if given else _CACHE_GB
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < float("inf"):
        raise ValueError(
            f"{CACHE_VARIABLE} is {given!r}. It is how many gigabytes of compiled programs may be "
            "kept: a number, such as 2 or 0.5; 0 keeps none."
        )
    return int(gigabytes * 1e9)


def is_for_doctor() -> bool:
    """Whether this process was started for the command `doctor`; known before it is imported."""
    program, *words = sys.argv
    # While Python looks for what -m names, the program's name is "-m".
    by_name = program == "-m" and "tpu_estimator_compat" in sys.orig_argv
    by_script = os.path.basename(program) == "tpu-estimator-compat"
    return (by_name or by_script) and words[:1] == ["doctor"]


def check() -> None:
    """Refuses installations of TensorFlow that cannot work. It imports nothing of TensorFlow.

    Raises:
      ImportError: two distributions own the module `tensorflow`; TensorFlow 2.20 stands beside a
        protobuf with which it cannot write a graph; or tensorflow-tpu beside a libtpu with which
        importing it aborts the process. The message has the commands that help.
    """
    found = {name: dist for name in DISTRIBUTIONS if (dist := _distribution(name))}
    if len(found) > 1:
        found = {name: dist for name, dist in found.items() if _owns_tensorflow(dist)}
    if len(found) > 1:
        raise ImportError(_two_distributions({name: d.version for name, d in found.items()}))
    for name, distribution in found.items():
        _check_protobuf(name, distribution.version)
        # A TensorFlow that is imported already has proved that it can be.
        if name == "tensorflow-tpu" and "tensorflow" not in sys.modules:
            _check_libtpu(distribution.version)


def has_xla_for_cpu() -> bool:
    """Whether `jit_compile` works without a TPU: the XLA of tensorflow-tpu is for TPUs only."""
    return _distribution("tensorflow-tpu") is None


def require_xla_for_cpu(what: str) -> None:
    """Refuses what cannot do without XLA for the CPU.

    Args:
      what: names it in the message.

    Raises:
      RuntimeError: it is tensorflow-tpu that is installed.
    """
    if not has_xla_for_cpu():
        raise RuntimeError(
            f"{what} compiles with XLA for the CPU, which tensorflow-tpu does not have. Run it in "
            "an environment of its own, with tensorflow."
        )


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _owns_tensorflow(distribution: importlib.metadata.Distribution) -> bool:
    """False for one without files, such as a stand-in that only fulfils another's requirement."""
    record = distribution.read_text("RECORD") or ""
    return any(line.startswith("tensorflow/__init__.py,") for line in record.splitlines())


def _two_distributions(versions: dict[str, str]) -> str:
    named = " and ".join(f"{name} {version}" for name, version in versions.items())
    removal = "pip uninstall -y " + " ".join(versions)
    ways = "\n".join(
        f"  to keep {name}:  {removal} && pip install --no-deps {name}=={version}"
        for name, version in versions.items()
    )
    return (
        f"{named} are both installed. Both own the module `tensorflow`, and pip has written the "
        "files of one over those of the other. Removing one takes files of the other with it: "
        f"remove both, and install one again:\n{ways}\n"
        "tf-keras asks pip for tensorflow; beside tensorflow-tpu, install it with --no-deps."
    )


def _check_protobuf(name: str, version: str) -> None:
    """TensorFlow 2.19 has its own limit, and 2.21 no longer asks for what protobuf 7 dropped."""
    protobuf = _distribution("protobuf")
    if protobuf and _release(version)[:2] == (2, 20) and _release(protobuf.version) >= (7,):
        raise ImportError(
            f"protobuf {protobuf.version} is installed beside {name} {version}, which cannot write "
            "a graph with it, as training does at its start. Install an older one:\n"
            "  pip install 'protobuf<7'"
        )


def _check_libtpu(tensorflow: str) -> None:
    libtpu = _distribution("libtpu")
    if libtpu and _release(libtpu.version) > _LAST_LIBTPU:  # without one, it runs on the CPU
        raise ImportError(
            f"libtpu {libtpu.version} is installed beside tensorflow-tpu {tensorflow}. Releases "
            "after 0.0.31 lack functions that it asks for, and importing it ends the process "
            "without an exception. Install the one that was tried:\n"
            f"  pip install libtpu=={LIBTPU}\n"
            "`preflight` needs a newer one: give it an environment of its own, with tensorflow."
        )


def _release(version: str) -> tuple[int, ...]:
    """(0, 0, 32, 1) of "0.0.32.1"; what follows the numbers, as in "2.21.0rc0", is left out."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
