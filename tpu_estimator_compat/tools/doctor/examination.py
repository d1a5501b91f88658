"""Runs all checks, in an order in which earlier failures explain later ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor import (
    caches,
    checkpoints,
    devices,
    probing,
    sums,
    training,
    versions,
)
from tpu_estimator_compat.tools.doctor.check_results import CheckResult, Status

Progress = Callable[[str], None]
_ALONE = {"TF_CONFIG": None}
_WAITING = 0.7  # part of a probe's time limit for which it waits for other processes


class Examination:
    """All checks of this machine; without a `model_dir`, checkpoints go to a temporary folder."""

    def __init__(self, model_dir: str | None, time_limit: float, progress: Progress):
        self._model_dir = model_dir
        self._time_limit = time_limit
        self._progress = progress
        self._platforms: dict[str, str] = {}
        self._hosts: dict[str, int] = {}

    def results(self) -> Iterator[CheckResult]:
        """Runs the checks in turn; OSError if processes or temporary files cannot be made."""
        runtimes = ["tensorflow"]
        if jax_installation.is_installed() and environment.has_xla_for_cpu():
            runtimes.append("jax")
        outcomes = {r: self._run(devices.observe, {"runtime": r}, _ALONE) for r in runtimes}
        answers = {r: o.answer for r, o in outcomes.items() if o.answer is not None}
        self._platforms = {runtime: answer["platform"] for runtime, answer in answers.items()}
        self._hosts = {runtime: answer["hosts"] for runtime, answer in answers.items()}
        yield from versions.check(max((a["chips"] for a in answers.values()), default=None))
        yield from (devices.judge(*item) for item in outcomes.items())
        yield from devices.judge_attached(outcomes)
        for runtime, name in devices.NAMES.items():
            if runtime not in runtimes:
                yield _without_jax()
            elif runtime not in answers:
                text = f"No step on {name}: its devices failed, see above"
                yield CheckResult(training.CHECK, Status.NOT_MADE, text)
        if "tensorflow" in answers:  # the checks below need TensorFlow
            yield from self._with_tensorflow()
        yield from caches.check()

    def _with_tensorflow(self) -> Iterator[CheckResult]:
        outcome = self._run(devices.observe_runtime, {}, _ALONE)
        yield _failure("runtime", '"auto"', outcome) or devices.judge_runtime(outcome.answer)
        yield from self._training()
        yield from self._sums()
        yield from checkpoints.check(
            self._model_dir, lambda arguments: self._run(checkpoints.observe, arguments, _ALONE)
        )

    def _training(self) -> Iterator[CheckResult]:
        arguments = {"runtime": "tensorflow", "reference": True}
        reference = self._run(training.observe, arguments, _ALONE)
        failure = _failure(training.CHECK, "TensorFlow on the CPU, use_tpu=False", reference)
        if failure:
            yield failure
            yield CheckResult(training.CHECK, Status.NOT_MADE, "There is nothing to compare with")
            return
        yield from training.judge_reference(reference.answer)
        sides: list[tuple[str, str, dict[str, str]]] = [
            (runtime, platform, {}) for runtime, platform in self._platforms.items()
        ]
        if self._platforms.get("jax", "cpu") != "cpu":
            sides.append(("jax", "cpu", {"JAX_PLATFORMS": "cpu"}))
        for runtime, platform, variables in sides:
            side = f"{devices.NAMES[runtime]} on {platform}"
            if (hosts := self._hosts[runtime]) > 1 and not variables:
                text = f"{side} spans {hosts} hosts; doctor tests single-host devices only"
                yield CheckResult(training.CHECK, Status.NOT_MADE, text)
                continue
            arguments = {"runtime": runtime, "reference": False}
            outcome = self._run(training.observe, arguments, {**_ALONE, **variables})
            failure = _failure(training.CHECK, side, outcome)
            yield from (
                [failure] if failure else training.judge(side, outcome.answer, reference.answer)
            )

    def _sums(self) -> Iterator[CheckResult]:
        kinds: list[tuple[str, Mapping[str, None]]] = [("", _ALONE)]
        tf_config = os.environ.get("TF_CONFIG", "")
        if tf_config and '"ps"' not in tf_config:
            kinds.append((", TF_CONFIG", {}))
        else:
            text = "No TF_CONFIG: no other processes to ask"
            if tf_config:
                text = "TF_CONFIG names parameter servers, whose workers exchange no sums"
            yield CheckResult(sums.CHECK, Status.NOT_MADE, text)
        for words, variables in kinds:
            for runtime, platform in self._platforms.items():
                side = f"{devices.NAMES[runtime]} on {platform}{words}"
                arguments = {"runtime": runtime, "seconds": _WAITING * self._time_limit}
                outcome = self._run(sums.observe, arguments, variables)
                yield _failure(sums.CHECK, side, outcome) or sums.judge(side, outcome.answer)

    def _run(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        variables: Mapping[str, str | None],
    ) -> probing.Outcome:
        concern = function.__module__.rpartition(".")[2]
        self._progress(f"{concern} {arguments.get('runtime', '')}".strip())
        return probing.run(function, arguments, self._time_limit, variables)


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
