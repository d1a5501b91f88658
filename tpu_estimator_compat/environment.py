"""Installed packages and environment variables; this module does not import TensorFlow."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys

# Each installs the module `tensorflow`, and pip lets one overwrite the files of another.
DISTRIBUTIONS = ("tensorflow", "tensorflow-tpu", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly")

LIBTPU = "0.0.24"
"""The libtpu release that was tried with tensorflow-tpu 2.20.0."""

_LAST_LIBTPU = (0, 0, 31)
"""The newest libtpu with which `import tensorflow` works; with 0.0.32.1 it aborts the process."""

_JAX = ("jax>=0.10.2,<0.13", "jaxlib>=0.10.2,<0.13")
EXTRAS = {
    "jax": _JAX,
    "notebook": ("ipython>=8.12",),
    "preflight": (*_JAX, "libtpu==0.0.51"),
    "preflight-gpu": (
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "jax-cuda12-pjrt==0.10.2",
        "jax-cuda12-plugin==0.10.2",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ),
}
"""Requirements of the extras that an error message may name, the same as in setup.cfg."""

ESTIMATOR_PACKAGE = "tensorflow-estimator==2.15.0"
"""The original: its release, parts of which run as they are."""

_REQUIRED = {"absl", "keras", "numpy", "tensorboard", "tensorflow", "tf_keras", "tf_slim"}


def pip_line(extra: str) -> str:
    """The pip command that installs only the packages of an extra.

    `pip install` of the extra itself installs this package's own requirements too, and so puts
    tensorflow beside tensorflow-tpu.
    """
    return "pip install " + " ".join(f"'{package}'" for package in EXTRAS[extra])


def explained(error: ModuleNotFoundError) -> str:
    """Advice if the missing module is a required one, or the one of KERAS_BACKEND; else empty."""
    if error.name and error.name == os.environ.get("KERAS_BACKEND"):
        return (
            f"KERAS_BACKEND is {error.name!r}, but that package is not installed. Unset it, or set "
            "it to tensorflow, which keras_model() needs."
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


def tensorflow_versions() -> str:
    """Name and version of each installed TensorFlow distribution; "no tensorflow" without one."""
    found = [f"{name} {dist.version}" for name in DISTRIBUTIONS if (dist := _distribution(name))]
    return ", ".join(found) or "no tensorflow"


RUNTIME_VARIABLE = "TPU_ESTIMATOR_COMPAT_RUNTIME"
TENSORFLOW, JAX, SESSION, AUTO = RUNTIMES = ("tensorflow", "jax", "session", "auto")


def runtime() -> str:
    """The runtime that `RUNTIME_VARIABLE` names; "auto" where it is not set."""
    return os.environ.get(RUNTIME_VARIABLE) or AUTO


EXECUTOR_VARIABLE = "TPU_ESTIMATOR_COMPAT_EXECUTOR"


def allows_single_threaded_executor() -> bool:
    """Whether small steps may run on TensorFlow's single-threaded executor."""
    return os.environ.get(EXECUTOR_VARIABLE) != "default"


PROFILE_VARIABLE = "TPU_ESTIMATOR_COMPAT_PROFILE"


def profile_folder() -> str | None:
    """The folder to which a profile of some steps is written; None for no profile."""
    return os.environ.get(PROFILE_VARIABLE) or None


SYNC_VARIABLE = "TPU_ESTIMATOR_COMPAT_FSYNC"


def syncs_files() -> bool:
    """Whether checkpoint and export files are synced to disk before other files name them."""
    return os.environ.get(SYNC_VARIABLE) not in ("0", "off")


SECRET_VARIABLE = "TPU_ESTIMATOR_COMPAT_CLUSTER_SECRET"


def cluster_secret() -> str:
    """The secret that a worker must share with its cluster to join it; empty for none."""
    return os.environ.get(SECRET_VARIABLE, "")


CACHE_VARIABLE = "TPU_ESTIMATOR_COMPAT_CACHE_GB"
_CACHE_GB = 2.0


def cache_limit() -> int:
    """The limit of the cached files' total size, in bytes: 2 GB, or as `CACHE_VARIABLE` says.

    Raises ValueError if the variable is not a finite number, or is negative.
    """
    given = os.environ.get(CACHE_VARIABLE)
    try:
        gigabytes = float(given) if given else _CACHE_GB
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < float("inf"):
        raise ValueError(
            f"{CACHE_VARIABLE} is {given!r}. Give the gigabytes of compiled programs to keep: "
            "a number, such as 2 or 0.5; 0 keeps none."
        )
    return int(gigabytes * 1e9)


def is_for_doctor() -> bool:
    """Whether the command line of this process starts the command `doctor`."""
    program, *words = sys.argv or [""]
    # While Python locates the module that -m names, sys.argv[0] is "-m".
    by_name = program == "-m" and "tpu_estimator_compat" in sys.orig_argv
    by_script = os.path.basename(program) == "tpu-estimator-compat"
    return (by_name or by_script) and words[:1] == ["doctor"]


def is_terminal(stream: object) -> bool:
    """Whether a stream is a terminal; it may be None, closed, or an object with `write` only."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False


def occupy_standard_streams() -> None:
    """Opens closed streams, of a process started with `2>&-`, on the null device.

    Else the next file that is opened, such as a checkpoint, would be what TensorFlow logs to.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def check() -> None:
    """Refuses installations of TensorFlow that cannot work, without importing TensorFlow.

    Raises:
      ImportError: two distributions own the module `tensorflow`; TensorFlow 2.20 cannot write
        graphs with the installed protobuf; or the import of tensorflow-tpu aborts the process with
        the installed libtpu. The message has the commands that help.
    """
    found = {name: dist for name in DISTRIBUTIONS if (dist := _distribution(name))}
    if len(found) > 1:
        found = {name: dist for name, dist in found.items() if _owns_tensorflow(dist)}
    if len(found) > 1:
        raise ImportError(_two_distributions({name: d.version for name, d in found.items()}))
    for name, distribution in found.items():
        _check_protobuf(name, distribution.version)
        # A TensorFlow that is already imported did not abort the process.
        if name == "tensorflow-tpu" and "tensorflow" not in sys.modules:
            _check_libtpu(distribution.version)


def has_xla_for_cpu() -> bool:
    """Whether `jit_compile` works without a TPU: the XLA of tensorflow-tpu is for TPUs only."""
    return _distribution("tensorflow-tpu") is None


def require_xla_for_cpu(what: str) -> None:
    """Raises RuntimeError, which names the action `what`, if tensorflow-tpu is installed."""
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
    """Whether a distribution has TensorFlow's files; an empty one only satisfies requirements."""
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
    """Refuses protobuf 7 for TensorFlow 2.20; pip does so for 2.19, and 2.21 works with it."""
    protobuf = _distribution("protobuf")
    if protobuf and _release(version)[:2] == (2, 20) and _release(protobuf.version) >= (7,):
        raise ImportError(
            f"protobuf {protobuf.version} is installed beside {name} {version}, which cannot write "
            "a graph with it, as training does at its start. Install an older one:\n"
            "  pip install 'protobuf<7'"
        )


def _check_libtpu(tensorflow: str) -> None:
    libtpu = _distribution("libtpu")
    if libtpu and _release(libtpu.version) > _LAST_LIBTPU:  # without it, CPUs are used
        raise ImportError(
            f"libtpu {libtpu.version} is installed beside tensorflow-tpu {tensorflow}. Releases "
            "after 0.0.31 lack functions that tensorflow-tpu needs: importing it ends the process "
            "without an exception. Install the one that was tested:\n"
            f"  pip install libtpu=={LIBTPU}\n"
            "`preflight` needs a newer one: give it an environment of its own, with tensorflow."
        )


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (0, 0, 32, 1) of "0.0.32.1", (2, 21, 0) of "2.21.0rc0"."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
