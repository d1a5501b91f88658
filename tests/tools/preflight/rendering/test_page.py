import dataclasses
import re

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.report import Collectives, Layer
from tpu_estimator_compat.tools.preflight.result import Preflight

from ..reports import FAILS, finding, sampled, with_findings
from ..showing import Elements, page


@sampled
def test_the_page_is_whole_and_needs_nothing_else(reports):
    text = Preflight(reports).to_html()
    seen = Elements(text)
    assert text.startswith("<!DOCTYPE html>")
    tags = [tag for tag, _ in seen.elements]
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert "http" not in text
    assert "@import" not in text
    assert not [a for _, a in seen.elements if "src" in a or "href" in a]
    assert "prefers-color-scheme: dark" in text
    used = set(re.findall(r"url\(#([\w-]+)\)", text))
    assert used == {a["id"] for tag, a in seen.elements if tag == "pattern"}


@sampled
def test_pictures_have_words(reports):
    seen = page(*reports)
    for tag, attributes in seen.elements:
        if tag == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert dict(seen.elements)["html"]["lang"] == "en"


def test_code_is_never_markup():
    bad = "\"><script>alert(1)</script><b a='&lt;"
    source = SourceLine(f"/{bad}.py", 1, bad, bad)
    said = Finding(Severity.FAILS, Kind.COMPILER, bad, bad, bad, bad, source)
    report = with_findings(said)
    report.layers = [Layer(bad, 5, 6, 7)]
    report.notes, report.unknown, report.compiler = [bad], bad, bad
    report.topology = report.mode = bad
    report.buffers = [
        dataclasses.replace(b, op=bad, shape=bad, source=source) for b in FAILS.buffers
    ]
    report.collectives = Collectives(1, 2, 3, {bad: 1})
    seen, usual = page(report), page(with_findings(finding()))
    assert not [tag for tag, _ in seen.elements if tag in ("script", "b")]
    assert seen.text.count(bad) > 10
    assert {tag for tag, _ in seen.elements} - {tag for tag, _ in usual.elements} <= {"text"}
