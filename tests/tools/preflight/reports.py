"""Reports to be shown in tests: invented figures of invented models."""

import dataclasses
import os

import pytest

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.report import (
    Buffer,
    Collectives,
    Depth,
    LargestBatch,
    Layer,
    Memory,
    Report,
)

GIB = 2**30
MIB = 2**20


def source(line: int, code: str, function: str = "model_fn") -> SourceLine:
    return SourceLine(os.path.join(os.getcwd(), "my_project", "model.py"), line, function, code)


def _fails(kind: Kind, op: str, node: str, *place) -> Finding:
    """A finding of an operation, on an invented line."""
    return Finding(
        Severity.MIGHT if kind is Kind.DYNAMIC_SHAPE else Severity.FAILS,
        kind,
        f"{op} does not run on a TPU, which has nothing like it.",
        f"Do without {op}, or do it in the input_fn.",
        op,
        node,
        source(*place),
    )


FINDINGS = [
    _fails(Kind.HOST_OP, "EagerPyFunc", "metrics/EagerPyFunc", 88, "score = tf.py_function(bleu)"),
    _fails(Kind.STRING, "StringToNumber", "StringToNumber", 41, "age = tf.strings.to_number(x)"),
    _fails(Kind.NOT_CONSTANT, "Reshape", "encoder/Reshape_2", 57, "x = tf.reshape(x)", "encoder"),
    _fails(Kind.DYNAMIC_SHAPE, "Unique", "Unique", 63, "ids, _ = tf.unique(tokens)"),
    Finding(
        Severity.FAILS,
        Kind.CONFIGURATION,
        "train_batch_size 100 does not divide by 8 replicas.",
        "Take a multiple of 8, such as 104.",
    ),
]


def fitting(topology: str = "v5e:2x2", hbm: int = int(15.75 * GIB), devices: int = 4) -> Report:
    """A step that compiled and fits."""
    encoder = [
        Layer(f"bert/encoder/layer_{i}", 27 * MIB, 54 * MIB, (150 - 3 * i) * MIB) for i in range(12)
    ]
    embeddings = Layer("bert/embeddings", 91 * MIB, 182 * MIB, 12 * MIB)
    gib = [int(size * GIB) for size in (1.214, 1.213, 1.212, 1.723)]
    return Report(
        topology,
        "train",
        devices,
        replicas=devices,
        hosts=1,
        batch_size=32,
        hbm=hbm,
        asked=Depth.COMPILE,
        reached=Depth.COMPILE,
        ops=14871,
        parameters=110106428,
        variable_bytes=int(1.213 * GIB),
        input_bytes=49152,
        collectives=Collectives(196, 440425712, 0, {"all-reduce": 4}),
        layers=[embeddings, *encoder, Layer("output", 6168, 12336)],
        memory=Memory(*gib, 31 * MIB),
        dispatch_steps=64,
        flops=2.25e12,
        bytes_accessed=3.2e10,
        largest_batch=LargestBatch(288, 296, (32, 64, 128, 256, 512, 384, 288, 296)),
        compiler="libtpu 0.0.51",
        seconds={"capture": 6.2, "scan": 0.2, "lower": 5.9, "compile": 118.4},
    )


def too_large(topology: str = "v2:1x1", hbm: int = int(7.48 * GIB)) -> Report:
    """A step that the compiler refused for its size, without figures by kind."""
    report = fitting(topology, hbm, devices=2)
    report.memory, report.flops, report.bytes_accessed = None, None, None
    report.largest_batch = None
    report.batch_size = 512
    report.variable_bytes = int(8.2 * GIB)
    report.layers = [Layer(x.name, 6 * x.variables, 6 * x.slots, 0) for x in report.layers]
    report.findings = [
        Finding(
            Severity.FAILS,
            Kind.MEMORY,
            "The step needs 24.63 GiB of memory, and a v2 device has 7.48 GiB.",
            "Take a smaller batch per replica, or bfloat16 activations.",
        )
    ]
    scores = source(120, "scores = tf.matmul(query, key, transpose_b=True)", "attention")
    report.buffers = [
        Buffer(
            3 * GIB,
            3 * GIB // 2,
            "f32[512,12,128,128]{3,2,1,0:T(8,128)}",
            f"bert/encoder/layer_{i}/attention/self/MatMul",
            scores,
        )
        for i in range(6)
    ] + [Buffer(412 * MIB, 412 * MIB, "f32[512,128,1024]{2,1,0:T(8,128)}")]
    return report


def over_the_line() -> Report:
    """A step of which the figures by kind are known, and more than the device has."""
    report = too_large()
    report.memory = Memory(8 * GIB, 8 * GIB, 8 * GIB, 2 * GIB, 31 * MIB)
    return report


def five_findings(topology: str = "v3:2x2") -> Report:
    """A step that was scanned, and no more, since five things are wrong in it."""
    return dataclasses.replace(
        not_compiled(topology),
        reached=Depth.SCAN,
        batch_size=None,
        findings=list(FINDINGS),
        layers=[Layer("encoder", 4800000, 9600000), Layer("head", 138268, 276536)],
        collectives=Collectives(24, 4938268),
        seconds={"capture": 1.1, "scan": 0.1},
        notes=["The step has a host_call; it runs on the host and is not checked."],
        unknown="",
    )


def not_compiled(topology: str = "v5p:2x2x1") -> Report:
    """A step that was lowered; the compiler is not installed."""
    report = fitting(topology, int(95.73 * GIB))
    report.reached, report.dispatch_steps = Depth.LOWER, None
    report.memory, report.flops, report.bytes_accessed = None, None, None
    report.largest_batch, report.compiler = None, ""
    report.layers = [Layer(x.name, x.variables, x.slots) for x in report.layers]
    report.collectives = Collectives(196, 440425712)
    report.unknown = "The TPU's compiler is not installed: pip install 'libtpu==0.0.51'."
    return report


def not_captured() -> Report:
    error = Finding(
        Severity.FAILS,
        Kind.MODEL_FN,
        "model_fn raised ValueError: Dimensions must be equal, but are 128 and 64.",
        source=source(12, "logits = tf.matmul(x, weights)"),
    )
    return Report("v5e:1x1", "train", 1, 1, 1, 8, 2**34, Depth.COMPILE, findings=[error])


def finding(line: int = 3, severity: Severity = Severity.FAILS, **other) -> Finding:
    source = SourceLine("/project/model.py", line, "model_fn", f"x = tf.strings.lower(y{line})")
    known = {"message": "No kernel.", "advice": "Do it in the input_fn.", "source": source}
    return Finding(severity, Kind.UNSUPPORTED_OP, **{**known, **other})


def with_findings(*findings: Finding, topology: str = "v5e:2x2") -> Report:
    return dataclasses.replace(five_findings(topology), findings=list(findings))


FITS, FAILS, UNKNOWN = fitting(), too_large(), not_compiled()
SAMPLES = {
    "fits": [FITS],
    "too large": [FAILS],
    "over the line": [over_the_line()],
    "findings": [five_findings()],
    "not compiled": [UNKNOWN],
    "not captured": [not_captured()],
    "side by side": [FAILS, FITS, UNKNOWN],
}
sampled = pytest.mark.parametrize("reports", SAMPLES.values(), ids=SAMPLES.keys())
