import dataclasses
import json

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.report import (
    Collectives,
    Depth,
    LargestBatch,
    Layer,
    Memory,
    Report,
)
from tpu_estimator_compat.tools.preflight.result import Preflight

from ..reports import FAILS, FINDINGS, FITS, over_the_line, sampled


def _fields(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_json_has_every_field_of_every_dataclass():
    full = over_the_line()
    full.largest_batch = FITS.largest_batch
    full.findings += FINDINGS
    said = json.loads(Preflight([full]).to_json())
    (report,) = said["reports"]
    more = {"verdict", "exit_code", "intensity", "least_seconds", "cannot_know"}
    assert set(report) == _fields(Report) | more
    assert set(report["memory"]) == _fields(Memory) | {"total"}
    assert set(report["collectives"]) == _fields(Collectives)
    assert set(report["largest_batch"]) == _fields(LargestBatch)
    assert set(report["layers"][0]) == _fields(Layer)
    assert set(report["buffers"][0]) == _fields(type(full.buffers[0]))
    assert set(report["findings"][1]) == _fields(Finding)
    assert set(report["findings"][1]["source"]) == _fields(SourceLine)


@sampled
def test_json_gives_the_reports_back(reports):
    said = json.loads(Preflight(reports).to_json())
    preflight = Preflight(reports)
    assert said["version"] == 2
    assert said["verdict"] == preflight.verdict.value
    assert said["exit_code"] == preflight.exit_code
    for read, report in zip(said["reports"], reports, strict=True):
        assert read["verdict"] == report.verdict.value
        assert _report(read) == report


def _report(read: dict) -> Report:
    def source(of):
        return SourceLine(**of) if of else None

    values = {name: read[name] for name in _fields(Report)}
    values["asked"] = Depth(read["asked"])
    values["reached"] = None if read["reached"] is None else Depth(read["reached"])
    values["findings"] = [
        Finding(
            **{
                **f,
                "severity": Severity(f["severity"]),
                "kind": Kind(f["kind"]),
                "source": source(f["source"]),
            }
        )
        for f in read["findings"]
    ]
    values["layers"] = [Layer(**layer) for layer in read["layers"]]
    buffer = type(FAILS.buffers[0])
    values["buffers"] = [buffer(**{**b, "source": source(b["source"])}) for b in read["buffers"]]
    if read["memory"]:
        values["memory"] = Memory(**{k: read["memory"][k] for k in _fields(Memory)})
        assert values["memory"].total == read["memory"]["total"]
    if read["collectives"]:
        values["collectives"] = Collectives(**read["collectives"])
    if found := read["largest_batch"]:
        values["largest_batch"] = LargestBatch(**{**found, "tried": tuple(found["tried"])})
    return Report(**values)
