"""The devices that TensorFlow and JAX see, and the runtime that is chosen here."""

from __future__ import annotations

import collections
import glob
from collections.abc import Mapping
from typing import Any

from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor import probing
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

CHECK = "devices"
_JAX = jax_installation.RANGE
_ATTACHED = (
    ("chips", "tpu", "TPU chip(s)", f"pip install 'jax[tpu]{_JAX}'"),
    (
        "gpus",
        "gpu",
        "NVIDIA GPU(s)",
        f"pip install 'jax[cuda12]{_JAX}', or pip install 'tensorflow[and-cuda]'",
    ),
)
_ADVICE = (
    "Install what drives them: {}. If it is installed, look at JAX_PLATFORMS and "
    "CUDA_VISIBLE_DEVICES."
)
NAMES = {"tensorflow": "TensorFlow", "jax": "JAX"}


def observe(runtime: str) -> dict[str, Any]:
    """The devices that a runtime sees, after a check of 1 + 1 on each: a probe for a child process.

    Returns:
      The numbers of attached TPU `chips` and NVIDIA `gpus`; `hosts`, the number of processes that
      share devices; the `platform` of steps; and this process's `devices`, each with `platform`,
      `kind`, and bytes of memory `used` and `limit`, None where unknown.
    """
    from tpu_estimator_compat.engine.topology import tpu_system

    chips = tpu_system.attached_chips()
    hosts, found = _of_jax(chips) if runtime == "jax" else (1, _of_tensorflow())
    return {
        "chips": chips,
        "gpus": len(glob.glob("/proc/driver/nvidia/gpus/*")),
        "hosts": hosts,
        "platform": platform(runtime),
        "devices": found,
    }


def platform(runtime: str) -> str:
    """The platform of this process's steps: "cpu", "gpu", "tpu" or JAX's name of another."""
    if runtime == "jax":
        import jax

        return str(jax.devices()[0].platform)
    import tensorflow as tf

    from tpu_estimator_compat.config import TPURunConfig
    from tpu_estimator_compat.engine.topology import tpu_system
    from tpu_estimator_compat.spec import ModeKeys

    if tpu_system.is_seen(TPURunConfig(), ModeKeys.TRAIN):
        return "tpu"
    return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"


def _of_tensorflow() -> list[dict[str, Any]]:
    import tensorflow as tf

    found: list[dict[str, Any]] = []
    for device in tf.config.list_physical_devices():
        kind, name = device.device_type, device.name.removeprefix("/physical_device:")
        if kind not in ("CPU", "GPU", "TPU"):
            continue  # TPU_SYSTEM and XLA_CPU are not devices of their own
        used = None
        if kind != "TPU":  # only the check of training connects to a TPU
            with tf.device(name):
                _check_sum(name, float(tf.constant(1.0) + 1.0))
        if kind == "GPU":
            used = tf.config.experimental.get_memory_info(name)["current"]
        details = tf.config.experimental.get_device_details(device) if kind == "GPU" else {}
        kind_name = details.get("device_name", kind)
        found.append({"platform": kind.lower(), "kind": kind_name, "used": used, "limit": None})
    return found


def _of_jax(chips: int) -> tuple[int, list[dict[str, Any]]]:
    """The number of JAX's processes, and the devices of this process."""
    from tpu_estimator_compat.config import TPURunConfig
    from tpu_estimator_compat.engine.topology import chosen_topology

    chosen_topology.join_cluster(TPURunConfig(runtime="jax"), tpu_semantics=True)
    import jax

    found = []
    for device in jax_installation.local(jax_installation.devices(1, tpu_chips=chips)):
        _check_sum(str(device), float(jax.device_put(1.0, device) + 1.0))
        memory = device.memory_stats() or {}
        used, limit = memory.get("bytes_in_use"), memory.get("bytes_limit")
        kind = device.device_kind
        found.append({"platform": device.platform, "kind": kind, "used": used, "limit": limit})
    return jax.process_count(), found


def _check_sum(device: str, found: float) -> None:
    if found != 2.0:
        raise RuntimeError(f"{device} says that 1 + 1 is {found}.")


def judge(runtime: str, outcome: probing.Outcome) -> CheckResult:
    """The result on a runtime's devices; a device that another process holds is a failure."""
    name = NAMES[runtime]
    if outcome.answer is None:
        return CheckResult(CHECK, Status.FAILURE, f"{name}: {outcome.error}", outcome.advice)
    groups = collections.Counter(
        (device["platform"], device["kind"], _memory(device))
        for device in outcome.answer["devices"]
    )
    told = ", ".join(f"{n} x {p} ({kind}), {memory}" for (p, kind, memory), n in groups.items())
    if probing.is_held(outcome):
        text = f"{name} sees {told}; another process has a device: {probing.tail(outcome.log)}"
        return CheckResult(CHECK, Status.FAILURE, text, probing.advice_for(outcome.log))
    return CheckResult(CHECK, Status.OK, f"{name} sees {told}")


def _memory(device: Mapping[str, Any]) -> str:
    used, limit = device["used"], device["limit"]
    if used is None:
        return "memory unknown"
    of = "" if limit is None else f" of {limit / 1e9:.1f}"
    return f"{used / 1e9:.1f}{of} GB in use"


def judge_attached(outcomes: Mapping[str, probing.Outcome]) -> list[CheckResult]:
    """Compares the attached devices with those that the started runtimes use."""
    started = {r: o for r, o in outcomes.items() if o.answer is not None}
    results = []
    for key, kind, words, line in _ATTACHED:
        count = max((outcome.answer[key] for outcome in started.values()), default=0)
        without = [r for r, outcome in started.items() if outcome.answer["platform"] != kind]
        status = Status.FAILURE if len(without) == len(started) else Status.WARNING
        if kind == "tpu" and status is Status.WARNING:
            # TensorFlow leaves the TPU to JAX.
            without = [runtime for runtime in without if runtime != "tensorflow"]
        if not count or not without or any(map(probing.is_held, started.values())):
            continue
        names = " and ".join(NAMES[runtime] for runtime in without)
        text = f"{count} {words} attached, not used by {names}."
        if "jax" in without:
            text += f" JAX: {probing.tail(started['jax'].log)}"
        results.append(CheckResult(CHECK, status, text, _ADVICE.format(line)))
    return results


def observe_runtime() -> dict[str, Any]:
    """The runtime that `runtime="auto"` takes, and why: a probe, to run in a child process."""
    from tpu_estimator_compat import environment
    from tpu_estimator_compat.config import TPURunConfig
    from tpu_estimator_compat.engine.jax.topology import JaxTopology
    from tpu_estimator_compat.engine.topology import chosen_topology, tpu_system
    from tpu_estimator_compat.spec import ModeKeys

    config = chosen_topology.join_cluster(
        TPURunConfig(runtime=environment.AUTO), tpu_semantics=True
    )
    found = chosen_topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    return {
        "taken": environment.JAX if isinstance(found, JaxTopology) else environment.TENSORFLOW,
        "replicas": found.num_replicas,
        "asked": TPURunConfig().runtime,
        "chips": tpu_system.attached_chips(),
        "tensorflow": tpu_system.is_seen(config, ModeKeys.TRAIN),
        "jax": jax_installation.is_installed(),
    }


def judge_runtime(answer: Mapping[str, Any]) -> CheckResult:
    taken, asked = answer["taken"], answer["asked"]
    text = (
        f'"auto" takes {taken}, {answer["replicas"]} replica(s): {answer["chips"]} TPU chip(s) '
        f"attached, TensorFlow sees {'a' if answer['tensorflow'] else 'no'} TPU, JAX is "
        f"{'' if answer['jax'] else 'not '}installed"
    )
    if taken == "jax" and asked == "tensorflow":
        text += ". TPU_ESTIMATOR_COMPAT_RUNTIME=tensorflow leaves the TPU alone"
        return CheckResult("runtime", Status.WARNING, text, "Unset that variable.")
    return CheckResult("runtime", Status.OK, text)
