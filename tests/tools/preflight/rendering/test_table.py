import dataclasses
import re

import pytest

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.preflight.rendering.table import table
from tpu_estimator_compat.tools.preflight.result import Preflight

from ..reports import (
    FITS,
    SAMPLES,
    UNKNOWN,
    finding,
    five_findings,
    not_captured,
    sampled,
    with_findings,
)
from ..showing import page, plain


@sampled
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width(reports, width):
    for line in table(reports, width).splitlines():
        # A line goes past it only where its one word does.
        assert len(line) <= width or len(line.split()) == 1


def test_columns_without_room_go_below_with_their_own_header():
    many = [dataclasses.replace(FITS, topology=f"v5e:{2 * n}x{2 * n}") for n in range(1, 9)]
    lines = table(many, 80).splitlines()
    assert sum(line.startswith("verdict") for line in lines) > 1
    header = [line for line in lines if re.fullmatch(r"(\s+v5e:\d+x\d+)+", line)]
    assert " ".join(header).split() == [report.topology for report in many]


@sampled
def test_text_of_our_own_is_ascii_and_has_no_spaces_at_line_ends(reports):
    text = table(reports, 80)
    assert text.isascii()
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_colours_change_nothing_but_colours():
    reports = SAMPLES["side by side"]
    colored = table(reports, 80, color=True)
    assert "\x1b[31m" in colored
    assert "\x1b[32m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == table(reports, 80)


def test_the_width_of_none_is_the_terminals(monkeypatch):
    for columns, width in (("72", 72), ("300", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        assert table([FITS]) == table([FITS], width)


def test_the_star_is_explained_where_there_is_one():
    for text in (table([FITS]), page(FITS).text):
        assert "* of one replica" in text
    for text in (table([not_captured()]), page(not_captured()).text):
        assert "*" not in text


def test_notes_and_reasons_are_said():
    noted = five_findings()
    for text in (plain(table([noted, UNKNOWN])), plain(page(noted, UNKNOWN).text)):
        assert f"v3:2x2: {noted.notes[0]}" in text
        assert f"v5p:2x2x1: {UNKNOWN.unknown}" in text


def test_code_has_no_control_characters_where_it_is_shown():
    evil = SourceLine("/m.py", 1, "f", "x = '\x1b[2J\x07\u202e'")
    report = with_findings(finding(source=evil))
    for text in (table([report]), Preflight([report]).to_html()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "?[2J??" in text
