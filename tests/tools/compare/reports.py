"""A report with something in most of its fields."""

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    Array,
    ArrayComparison,
    Curve,
    CurveComparison,
    FirstDifference,
    NamesComparison,
    OpComparison,
    Report,
    Side,
    Speed,
    Stage,
    Tolerance,
    Verdict,
)

STEPS = (1, 2, 3)


def curve(name, *values, first_step=None):
    difference = tuple(abs(v - s) / s for v, s in zip(values, STEPS, strict=True))
    old = Curve(STEPS, tuple(float(s) for s in STEPS))
    agreement = Agreement.DIFFERENT if first_step else Agreement.ROUNDING
    limits = (1e-6, 2e-6, 4e-6)
    return CurveComparison(
        name, agreement, old, Curve(STEPS, values), STEPS, difference, limits, first_step
    )


def array(name, largest, agreement=Agreement.ROUNDING, **fields):
    held = Array((3, 2), "float32", 0.5)
    return ArrayComparison(name, agreement, held, held, largest, largest / 2, 1e-6, **fields)


def made(**fields):
    scalar = [Array((), "float32", value, value) for value in (0.8125, 0.75)]
    accuracy = ArrayComparison("1/accuracy", Agreement.DIFFERENT, *scalar, 0.0625 / 0.8125)
    given = {
        "verdict": Verdict.DIVERGES,
        "summary": "diverges <from> step 3 & on",
        "old": Side("TensorFlow 2.15.1", "/old", {"keras": "2.15.0"}, Speed(12.5, 5.0, 6.0, 2**31)),
        "new": Side("ours", "/new", {"keras": "3.15.0"}, Speed(30.0, 4.0, 5.0, 2**30)),
        "command": ("train.py", "--flag=<b>"),
        "steps": 3,
        "tolerance": Tolerance("by two runs", 10.0, 1e-6, True),
        "first_difference": FirstDifference(
            Stage.UPDATE, "w differs", 1, ("w",), SourceLine("train.py", 3, code="x = a < b")
        ),
        "loss": curve("loss", 1.0, 2.000001, 3.5, first_step=3),
        "scalars": (curve("learning_rate", 1.0, 2.0, 3.0),),
        "variables": (array("small", 3e-8), array("w", 0.25, Agreement.DIFFERENT, note="stands")),
        "evaluations": (accuracy,),
        "names": (NamesComparison("tags", ("loss",), ("gone",)),),
        "first_step": (OpComparison("w/MatMul", "MatMul", False, array("w/MatMul", 0.125)),),
        "notes": ("a remark",),
    }
    return Report(**given | fields)
