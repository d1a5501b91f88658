"""A short run of a whole script in a test: two steps of each training, no file kept.

The script runs in a process of its own, by `python -m tpu_estimator_compat run --dry-run`. This
module imports neither TensorFlow nor pytest.
"""

from __future__ import annotations

import dataclasses
import os

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.dry_run import report as report_lib
from tpu_estimator_compat.tools.dry_run.report import Report


@dataclasses.dataclass(frozen=True, kw_only=True)
class DryRun(Report):
    """The end of a script's dry run, and what it reached.

    Attributes:
      script: as given.
      status: the exit status, 0 if all went well; minus a signal's number where one ended the
        process; None where it was killed after `time_limit`, or left by `os._exit(0)`.
      calls: the calls of estimators' methods, in the order in which they began.
      not_reached: calls in the script's source that did not run.
      output: text that the process wrote to standard output and standard error.
    """

    script: str
    output: str

    def check(self) -> None:
        """Raises AssertionError, with the calls and the output, unless the exit status is 0."""
        if self.status == 0:
            return
        # The output from its last traceback on, and the table if that is missing.
        start = max(self.output.rfind("Traceback (most recent call last)"), 0)
        end = "\n".join(self.output[start:].splitlines()[-_LINES:])
        table = "" if report_lib.VERDICT in end else f"\n\n{report_lib.told(self).text(100)}"
        raise AssertionError(f"The dry run of {self.script} failed.\n\n{end}{table}")


_LINES = 100


def dry_run(
    script: str | os.PathLike[str],
    *flags: str,
    behavior: str = "auto",
    module: bool = False,
    time_limit: float | None = 600.0,
    replicas: int = 0,
    numpy_legacy: bool = False,
    own_folders: tuple[str, ...] = (),
    whole_predictions: bool = False,
) -> DryRun:
    """Runs a script with two steps of each training, one of each evaluation, one batch predicted.

    Checkpoints, events and exports are in a temporary folder that is gone at the end; what the
    script itself writes or removes is not.

    >>> testing.dry_run("train.py", "--model_dir=model", replicas=4).check()  # doctest: +SKIP

    Args:
      script: its path, or with `module` the name of a module.
      *flags: the script's arguments.
      behavior: "v1" for graphs, "v2" for eager execution, "auto" to detect it.
      module: as Python's `-m`.
      time_limit: seconds after which the process is killed; None for none.
      replicas: logical CPUs, which are the replicas under `use_tpu=True`; 0 for the plain CPU.
      numpy_legacy: whether names that NumPy dropped work.
      own_folders: the script's flags that name folders which it writes to, besides model_dir,
        output_dir and job_dir.
      whole_predictions: whether predictions are for all of the data, not for one batch.

    Returns:
      The result, whatever it is; `check()` raises where the script failed.
    """
    with child_process.temporary_folder("dry_run_test_") as folder:
        answer, log = folder / "report.json", folder / "log"
        words = ["run", "--dry-run", f"--json={answer}", f"--behavior={behavior}"]
        words += [f"--logical-cpus={replicas}"] if replicas else []
        words += ["--numpy-legacy"] * numpy_legacy + ["-m"] * module
        words += ["--whole-predictions"] * whole_predictions
        words += [f"--own-folder={flag}" for flag in own_folders]
        words += [os.fspath(script), *flags]
        command = child_process.module_command("tpu_estimator_compat", *words)
        ending = child_process.wait(child_process.start(command, log), time_limit)
        text = answer.read_text(encoding="utf-8") if answer.exists() else ""
        # The last report that the process wrote, perhaps incomplete.
        found = Report.from_json(text) if text else Report(None)
        output = log.read_text(encoding="utf-8", errors="replace")
    status = found.status if ending.code == 0 else ending.code
    return DryRun(**{**vars(found), "status": status}, script=os.fspath(script), output=output)
