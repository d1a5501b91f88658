import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import pytest

from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    Curve,
    CurveComparison,
    Failure,
    Report,
    Side,
    Stage,
    Verdict,
)
from tpu_estimator_compat.tools.compare.showing import shown

from .reports import STEPS, array, curve, made


class Parsed(HTMLParser):
    """What a reader gets: texts, exact figures, attributes that would load something."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.figures, self.loaded, self.tags = [], [], [], []
        self.feed(text)
        self.text = " ".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        self.loaded += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag == "data":
            self.figures.append(attributes["value"])

    def handle_data(self, data):
        self.texts.append(data)


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def test_figures_are_those_of_the_json():
    report = made()
    figures = {float(figure) for figure in Parsed(shown(report).page()).figures}
    known = {float(number) for number in numbers(json.loads(shown(report).json()))}
    # Only ratios of speeds are the page's own.
    assert figures - known <= {30.0 / 12.5, 4.0 / 5.0, 5.0 / 6.0, 0.5}
    compared = (*report.variables, *report.evaluations, report.first_step[0].values)
    wanted = {c.largest for c in compared}
    assert wanted | {0.8125, 0.75, 10.0, 1e-6, 0.5 / 3} <= figures


def test_the_text_says_the_same_numbers():
    report = made()
    texts = Parsed(shown(report).page()).texts
    words = shown(report).text(100).split()
    compared = [*report.variables, *report.evaluations, report.loss]
    for number in (f"{c.largest:.1e}" for c in compared):
        assert number in words
        assert number in texts
    for speed in ("12.5", "30.0", "5.0 s", "6.0 s", "4.0 s", "2.00 GiB", "1.00 GiB"):
        assert set(speed.split()) <= {*words}
        assert speed in texts
    assert "What differs first: update (step 1)" in " ".join(words)
    assert {"What differs first: update (step 1)", "w differs"} <= {*texts}


def test_both_scripts_are_named_and_no_deleted_folder():
    report = made()
    old, new = (
        dataclasses.replace(side, script=(name, "--flag=1"))
        for side, name in ((report.old, "old.py"), (report.new, "moved.py"))
    )
    report = dataclasses.replace(report, old=old, new=new)
    texts = Parsed(shown(report).page()).texts
    assert {"old.py --flag=1", "moved.py --flag=1", "/old", "/new"} <= {*texts}
    assert ["script", "old.py", "moved.py"] in [
        line.split() for line in shown(report).text().split("\n")
    ]
    report = report.without_folders()
    assert not {"/old", "/new"} & {*Parsed(shown(report).page()).texts}
    assert Report.from_json(shown(report).json()) == report


def test_curves_can_be_read_at_each_step():
    text = shown(made()).page()
    lines = re.findall(r'data-lines="([^"]*)"', text)
    first = json.loads(lines[0].replace("&quot;", '"'))
    assert first == [["TensorFlow 2.15.1", ["1", "2", "3"]], ["ours", ["1", "2", "3.5"]]]


def test_it_needs_nothing_else():
    found = Parsed(shown(made()).page())
    assert not found.loaded
    assert not {"link", "img", "iframe"} & set(found.tags)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", shown(made()).page())


def test_texts_are_texts():
    text = shown(made()).page()
    assert "--flag=&lt;b&gt;" in text
    assert "diverges <from> step 3 & on" in Parsed(text).text
    assert "x = a < b" in Parsed(text).text


def test_stages_before_the_difference_have_passed():
    states = re.findall(r'<li(?: class="(\w+)")?>([a-z ]+)</li>', shown(made()).page())
    before = [("good", "input"), ("good", "forward"), ("good", "gradient")]
    after = [("faint", stage.value) for stage in list(Stage)[4:]]
    assert states[: len(Stage)] == [*before, ("bad", "update"), *after]


def test_long_tables_are_folded_and_whole():
    variables = tuple(array(f"v{n}", 1e-9 * n) for n in range(100))
    text = shown(made(variables=variables)).page()
    assert "60 more" in Parsed(text).text
    assert all(f">v{n}<" in text for n in range(100))


def test_equal_runs():
    report = made(
        verdict=Verdict.SAME, first_difference=None, loss=curve("loss", 1.0, 2.0, 3.0), scalars=()
    )
    text = Parsed(shown(report).page()).text
    assert "The two are equal at each of 3 steps." in text
    assert "What differs first" not in text


def test_failures_are_shown_with_their_tracebacks():
    old = Side("one", "/x", failure=Failure("script", "ImportError: no x", "Traceback\nno x"))
    new = Side("two", "/y", failure=Failure("time", "it took more than 1 s", "Traceback of two"))
    report = Report(Verdict.UNKNOWN, "no verdict", old, new, unknown="Neither run came to its end.")
    page = Parsed(shown(report).page()).text
    for part in ("Traceback\nno x", "Traceback of two", "Neither run came to its end."):
        assert part in page
    text = shown(report).text(80)
    assert "one: ImportError: no x\n  | Traceback\n  | no x" in text
    assert "two: it took more than 1 s" in text


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_losses_that_are_not_finite(bad):
    loss = dataclasses.replace(curve("loss", 1.0, bad, 3.0), agreement=Agreement.DIFFERENT)
    text = shown(made(loss=loss)).page()
    [_, path] = re.findall(r'<path d="([^"]*)" class="line (?:old|new)"', text)[:2]
    assert path.count("M") == 2  # a gap between two points
    assert f"&quot;{bad:.6g}&quot;" in text


def test_nothing_finite():
    nan = Curve(STEPS, (math.nan,) * 3)
    loss = CurveComparison("loss", Agreement.EQUAL, nan, nan, STEPS, (0.0,) * 3, (1e-6,) * 3)
    assert "loss: no finite values." in Parsed(shown(made(loss=loss)).page()).text
