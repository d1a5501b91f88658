import re

from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight.rendering import groups
from tpu_estimator_compat.tools.preflight.rendering.table import table

from ..reports import FAILS, FITS, finding, with_findings
from ..showing import page


def test_what_fails_comes_before_what_might():
    report = with_findings(
        finding(1, Severity.MIGHT, message="Might."), finding(2, message="Certain.")
    )
    for text in (table([report]), page(report).text):
        places = [
            text.index(said) for said in ("Certainly fails (1)", "Certain.", "Might fail (1)")
        ]
        assert places == sorted(places)
        assert places[-1] < text.index("Might.")


def test_a_finding_of_several_topologies_is_told_once():
    names = ["v2:2x2", "v3:2x2", "v5e:2x2"]
    same = [with_findings(finding(), topology=name) for name in names]
    for text in (table(same), page(*same).text):
        assert text.count("No kernel.") == 1
        assert "on: " not in text
    other = [*same[:2], with_findings(topology="v5e:2x2")]
    for text in (table(other), page(*other).text):
        assert text.count("No kernel.") == 1
        assert re.search("[Oo]n:? v2:2x2, v3:2x2\\b", text)


def test_findings_that_differ_in_their_node_only_are_one():
    report = with_findings(*(finding(op="StringLower", node=f"layer_{i}/Lower") for i in range(12)))
    (group,) = groups.findings([report, report], Severity.FAILS)
    assert group.nodes == tuple(f"layer_{i}/Lower" for i in range(12))
    assert group.operations == (
        "StringLower: layer_0/Lower, layer_1/Lower, layer_2/Lower and 9 more"
    )


def test_findings_of_different_lines_stay_apart():
    report = with_findings(finding(3), finding(4))
    assert len(groups.findings([report], Severity.FAILS)) == 2
    for line in (3, 4):
        assert f"model.py:{line}" in table([report])


def test_findings_are_sorted_by_kind():
    first = finding(9, message="Later in the code.")
    second = Finding(Severity.FAILS, Kind.CONFIGURATION, "A bad configuration.")
    found = groups.findings([with_findings(first, second)], Severity.FAILS)
    assert [group.finding.kind for group in found] == [Kind.CONFIGURATION, Kind.UNSUPPORTED_OP]


def test_largest_buffers_come_with_their_lines():
    for text in (table([FAILS]), page(FAILS).text):
        assert "f32[512,12,128,128]{3,2,1,0:T(8,128)}" in text
        assert "bert/encoder/layer_0/attention/self/MatMul" in text
        assert "my_project/model.py:120" in text
        assert "1.50 GiB" in text
    assert groups.buffers(FAILS)[0].number == 6
    assert "Largest buffers" not in table([FITS]) + page(FITS).text
