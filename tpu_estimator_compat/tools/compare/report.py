"""The report of a comparison of two runs, as immutable values.

The report is plain data, without TensorFlow; `showing.shown` shows it. Its JSON is an object:
`version`, `exit_code`, and the fields of `Report` under their names, enums as their values.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import document, json_form, numbers
from tpu_estimator_compat.tools.reports.document import Tone

VERSION = 1
"""The JSON's version; rises when a key is removed or changes its meaning, not with new keys."""


class Verdict(document.Verdict):
    SAME = "same", 0, Tone.GOOD
    """All results that were compared are equal, bit for bit."""
    ROUNDING = "same up to rounding", 0, Tone.FAIR
    """Nothing differs by more than the tolerance."""
    UNKNOWN = "could not be judged", 2, Tone.WARN
    DIVERGES = "diverges", 1, Tone.WARN
    """Losses, scalars or variables of a later step differ; the first step, if recorded, agrees."""
    DIFFERENT = "different", 1, Tone.BAD
    """The first step, an input, an evaluation, a prediction or a name in files differs."""


class Agreement(enum.Enum):
    EQUAL = "equal"
    """The values are equal bit for bit."""
    ROUNDING = "rounding"
    """The values differ by no more than the tolerance."""
    DIFFERENT = "different"
    """The values differ by more, or in shape or dtype."""
    ONLY_OLD = "only old"
    ONLY_NEW = "only new"

    @property
    def agrees(self) -> bool:
        return self in (Agreement.EQUAL, Agreement.ROUNDING)


class Stage(enum.Enum):
    """The stage of the data flow where runs differ, in order."""

    INPUT = "input"
    FORWARD = "forward"
    """The loss of the first step, on equal input and equal variables."""
    GRADIENT = "gradient"
    """The optimizer's slots after the first step, after an equal loss."""
    UPDATE = "update"
    """The variables after the first step, after equal slots."""
    LATER = "later steps"
    """The first step is the same; a later one is not."""
    EVALUATION = "evaluation"
    """Training is the same; results of `evaluate` are not."""
    PREDICTION = "prediction"
    """Training is the same; results of `predict` are not."""
    FILES = "files"
    """Numbers are the same; names in files are not."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """The reason why a run did not complete.

    Attributes:
      kind: "script" if the script raised or exited with a status; "time", "disk" or "killed".
      traceback: the script's own, or the end of its output; may be empty.
    """

    kind: str
    message: str
    traceback: str = ""


@dataclasses.dataclass(frozen=True)
class Speed:
    """The speed of a run, which is shown but is no part of the verdict.

    Attributes:
      steps_per_second: training steps per second, by the median duration of steps after the first;
        None with fewer than two steps. Recording slows the steps of both sides.
      start_up_seconds: from the start of the process to the end of the first training step.
      seconds: duration of the whole process.
      peak_memory: the most bytes of resident memory.
    """

    steps_per_second: float | None = None
    start_up_seconds: float | None = None
    seconds: float | None = None
    peak_memory: int | None = None

    def figures(self) -> dict[str, tuple[float, str]]:
        numbered = {
            "steps per second": (self.steps_per_second, ""),
            "start-up": (self.start_up_seconds, " s"),
            "in all": (self.seconds, " s"),
        }
        found = {k: (v, f"{v:.1f}{unit}") for k, (v, unit) in numbered.items() if v is not None}
        if self.peak_memory is not None:
            found["peak memory"] = self.peak_memory, numbers.size(self.peak_memory)
        return found


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two runs; versions, speed and script are empty if read from a model_dir.

    Attributes:
      name: "original", "old", "new", or the setting that `against` compares with: "session" where
        sessions took the original's place.
      folder: the directory with its event files and checkpoints; empty once it is deleted.
    """

    name: str
    folder: str
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    speed: Speed | None = None
    failure: Failure | None = None
    script: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The tolerance for rounding.

    Attributes:
      found: the source of the tolerance, in sentences.
      factor: the multiple of the yardstick's differences that is rounding.
      floor: relative difference that is always rounding.
      deterministic: whether the old run, done twice, was equal bit for bit; None if not tried.
    """

    found: str
    factor: float
    floor: float
    deterministic: bool | None = None


@dataclasses.dataclass(frozen=True)
class Curve:
    """A scalar over global steps; `steps` and `values` have the same length."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attributed:
    """`by` is "TensorFlow" or "this package", which makes a difference; empty if not known."""

    by: str = ""

    @property
    def by_whom(self) -> str:
        return f", by {self.by}" if self.by else ""


@dataclasses.dataclass(frozen=True)
class CurveComparison(Attributed):
    """A scalar of training, such as the loss, in both runs.

    Attributes:
      name: "loss", or the tag of a summary.
      agreement: the worst agreement of all steps.
      steps: global steps of both runs.
      difference: at each of `steps`, |new - old| / |old|; |new - old| where old is 0.
      tolerance: at each of `steps`, the limit of `difference`.
      first_step: the first step beyond the tolerance, or of one run only; None without any.
    """

    name: str
    agreement: Agreement
    old: Curve | None
    new: Curve | None
    steps: tuple[int, ...] = ()
    difference: tuple[float, ...] = ()
    tolerance: tuple[float, ...] = ()
    first_step: int | None = None

    @property
    def largest(self) -> float:
        """The largest difference; 0 where the runs have no step in common."""
        known = [d for d in self.difference if not math.isnan(d)]
        return math.nan if len(known) < len(self.difference) else max(known, default=0.0)


@dataclasses.dataclass(frozen=True)
class Array:
    """Shape, dtype and largest magnitude of an array; its value if it is a scalar."""

    shape: tuple[int, ...]
    dtype: str
    magnitude: float = 0.0
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class ArrayComparison(Attributed):
    """An array of the same name in both runs: a variable, a metric, a prediction, an activation.

    Attributes:
      largest: the largest |new - old| of an element over the largest |old| of an element (|new -
        old| where old is 0 throughout); None where shapes or dtypes differ, or are not numeric.
      typical: the root mean square of new - old over that of old; exceptions as for `largest`.
      tolerance, typical_tolerance: the limits of `largest` and of `typical`.
      note: the difference of shapes or dtypes, such as "int32[2] instead of int32[3]"; else empty.
    """

    name: str
    agreement: Agreement
    old: Array | None
    new: Array | None
    largest: float | None = None
    typical: float | None = None
    tolerance: float | None = None
    typical_tolerance: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class NamesComparison(Attributed):
    """Names of a kind, such as "signatures of exports", that both runs or one of them wrote."""

    what: str
    both: tuple[str, ...]
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.only_old and not self.only_new


@dataclasses.dataclass(frozen=True)
class OpComparison:
    """An activation or a gradient of the first step: the output of `op`, such as "dense/MatMul"."""

    op: str
    type: str
    gradient: bool
    values: ArrayComparison
    source: SourceLine | None = None


@dataclasses.dataclass(frozen=True)
class FirstDifference(Attributed):
    """The first difference along the data flow.

    Attributes:
      what: the difference, in one sentence.
      step: the global step after which the difference shows; None where it belongs to no step.
      names: the names that differ, of features, variables, scalars, metrics or entries of files.
    """

    stage: Stage
    what: str
    step: int | None = None
    names: tuple[str, ...] = ()
    source: SourceLine | None = None


@dataclasses.dataclass(frozen=True)
class Report:
    """The comparison of two runs of one training.

    Attributes:
      summary: the verdict in a sentence, with the difference.
      old, new: the reference run, the original's or an older one; and the run to judge.
      command: the script and its arguments; empty for runs read from a model_dir.
      steps: number of training steps compared.
      tolerance: None where nothing could be compared.
      scalars: scalars of training other than the loss, by tag.
      input: features and labels of the first step.
      first_update, variables: variables after the first step, and of the last checkpoint.
      evaluations: results of `evaluate`, named "1/accuracy" for the first call's.
      predictions: results of `predict`, all examples together, named in the same way.
      first_step: activations and gradients of the first step in the graph's order; None if they
        were not recorded.
      notes: other remarks, such as settings that make a script deterministic.
      unknown: the reason for the verdict UNKNOWN; empty for others.
      instead: says that sessions took the original's place, and why; empty where they did not.
    """

    verdict: Verdict
    summary: str
    old: Side
    new: Side
    command: tuple[str, ...] = ()
    steps: int = 0
    tolerance: Tolerance | None = None
    first_difference: FirstDifference | None = None
    loss: CurveComparison | None = None
    scalars: tuple[CurveComparison, ...] = ()
    input: tuple[ArrayComparison, ...] = ()
    first_update: tuple[ArrayComparison, ...] = ()
    variables: tuple[ArrayComparison, ...] = ()
    evaluations: tuple[ArrayComparison, ...] = ()
    predictions: tuple[ArrayComparison, ...] = ()
    names: tuple[NamesComparison, ...] = ()
    first_step: tuple[OpComparison, ...] | None = None
    notes: tuple[str, ...] = ()
    unknown: str = ""
    instead: str = ""

    def without_folders(self) -> Report:
        sides = {k: dataclasses.replace(getattr(self, k), folder="") for k in ("old", "new")}
        return dataclasses.replace(self, **sides)

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code

    @property
    def curves(self) -> tuple[CurveComparison, ...]:
        """The loss and the other scalars."""
        return (*([self.loss] if self.loss else []), *self.scalars)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report that `compare --json` printed; ValueError for other texts and versions."""
        fields = json_form.parsed(text)
        version = fields.pop("version", None)
        if version != VERSION:
            raise ValueError(
                f"The JSON has version {version!r}; expected {VERSION}, as `compare --json` of "
                "this package writes it. Read it with the version of the package that wrote it."
            )
        fields.pop("exit_code", None)
        report = json_form.decoded(cls, fields)
        assert isinstance(report, cls)
        return report
