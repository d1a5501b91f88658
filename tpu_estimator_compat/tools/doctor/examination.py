"""Runs all checks, in an order in which earlier failures explain later ones."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.tools.doctor import (
    caches,
    checkpoints,
    devices,
    probing,
    sums,
    training,
    versions,
)
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

Variables = Mapping[str, str | None]
_ALONE: Variables = {"TF_CONFIG": None}
_WAITING = 0.7  # part of a probe's time limit for which it waits for other processes


@dataclasses.dataclass(frozen=True)
class Examination:
    """All checks of this machine; without a `model_dir`, checkpoints go to a temporary folder."""

    model_dir: str | None
    time_limit: float

    def results(self) -> Iterator[CheckResult]:
        """Runs the checks in turn; OSError if processes or temporary files cannot be made."""
        runtimes = ["tensorflow"]
        if jax_installation.is_installed() and environment.has_xla_for_cpu():
            runtimes.append("jax")
        outcomes = {r: self._run(devices.observe, {"runtime": r}) for r in runtimes}
        seen = {r: o.answer for r, o in outcomes.items() if o.answer is not None}
        yield from versions.check(max((a["chips"] for a in seen.values()), default=None))
        yield from (devices.judge(*item) for item in outcomes.items())
        yield from devices.judge_attached(outcomes)
        for runtime, name in devices.NAMES.items():
            if runtime not in runtimes:
                yield _without_jax()
            elif runtime not in seen:
                text = f"No step on {name}: its devices failed, see above"
                yield CheckResult(training.CHECK, Status.NOT_MADE, text)
        if "tensorflow" in seen:  # the checks below need TensorFlow
            outcome = self._run(devices.observe_runtime, {})
            yield _failure("runtime", '"auto"', outcome) or devices.judge_runtime(outcome.answer)
            yield from self._training(seen)
            yield from self._sums(seen)
            yield from checkpoints.check(
                self.model_dir, lambda arguments: self._run(checkpoints.observe, arguments)
            )
        yield from caches.check()

    def _training(self, seen: Mapping[str, Any]) -> Iterator[CheckResult]:
        arguments = {"runtime": "tensorflow", "reference": True}
        reference = self._run(training.observe, arguments)
        failure = _failure(training.CHECK, "TensorFlow on the CPU, use_tpu=False", reference)
        if failure:
            yield failure
            yield CheckResult(training.CHECK, Status.NOT_MADE, "There is nothing to compare with")
            return
        yield from training.judge_reference(reference.answer)
        sides = [(runtime, found["platform"], _ALONE) for runtime, found in seen.items()]
        if "jax" in seen and seen["jax"]["platform"] != "cpu":
            sides.append(("jax", "cpu", {**_ALONE, "JAX_PLATFORMS": "cpu"}))
        for runtime, platform, variables in sides:
            side = f"{devices.NAMES[runtime]} on {platform}"
            if (hosts := seen[runtime]["hosts"]) > 1 and variables is _ALONE:
                text = f"{side} spans {hosts} hosts; doctor tests single-host devices only"
                yield CheckResult(training.CHECK, Status.NOT_MADE, text)
                continue
            arguments = {"runtime": runtime, "reference": False}
            outcome = self._run(training.observe, arguments, variables)
            failure = _failure(training.CHECK, side, outcome)
            yield from (
                [failure] if failure else training.judge(side, outcome.answer, reference.answer)
            )

    def _sums(self, seen: Mapping[str, Any]) -> Iterator[CheckResult]:
        kinds: list[tuple[str, Variables]] = [("", _ALONE)]
        tf_config = os.environ.get("TF_CONFIG", "")
        if tf_config and '"ps"' not in tf_config:
            kinds.append((", TF_CONFIG", {}))
        else:
            text = "No TF_CONFIG: no other processes to ask"
            if tf_config:
                text = "TF_CONFIG names parameter servers, whose workers exchange no sums"
            yield CheckResult(sums.CHECK, Status.NOT_MADE, text)
        for words, variables in kinds:
            for runtime, found in seen.items():
                side = f"{devices.NAMES[runtime]} on {found['platform']}{words}"
                arguments = {"runtime": runtime, "seconds": _WAITING * self.time_limit}
                outcome = self._run(sums.observe, arguments, variables)
                yield _failure(sums.CHECK, side, outcome) or sums.judge(side, outcome.answer)

    def _run(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        variables: Variables = _ALONE,
    ) -> probing.Outcome:
        concern = function.__module__.rpartition(".")[2]
        with Activity(f"{concern} {arguments.get('runtime', '')}".strip()):
            return probing.run(function, arguments, self.time_limit, variables)


def _without_jax() -> CheckResult:
    if environment.has_xla_for_cpu():
        text = "No step on JAX, which is not installed: TensorFlow's runtime only"
        return CheckResult(training.CHECK, Status.NOT_MADE, text, versions.line_for_jax({}))
    text = 'No step on JAX: runtime="jax" is refused beside tensorflow-tpu'
    return CheckResult(training.CHECK, Status.NOT_MADE, text)


def _failure(check: str, side: str, outcome: probing.Outcome) -> CheckResult | None:
    """The result of a probe that failed; None where it did not."""
    if outcome.answer is not None:
        return None
    return CheckResult(check, Status.FAILURE, f"{side}: {outcome.error}", outcome.advice)
