"""The user's file names and code, where they are shown."""

from tpu_estimator_compat.graph.source_line import Source
from tpu_estimator_compat.preflight.rendering.sources import place, printable
from tpu_estimator_compat.preflight.rendering.table import table
from tpu_estimator_compat.preflight.result import Preflight

from ..reports import finding, with_findings


def test_files_below_the_working_directory_are_named_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert place(Source(str(tmp_path / "a" / "model.py"), 7)) == "a/model.py:7"
    assert place(Source("/home/someone/model.py", 7)) == "~/model.py:7"
    assert place(Source("/elsewhere/model.py", 7)) == "/elsewhere/model.py:7"
    assert place(Source(f"{tmp_path}_2/model.py", 7)) == f"{tmp_path}_2/model.py:7"


def test_code_has_no_control_characters_where_it_is_shown():
    evil = Source("/m.py", 1, "f", "x = '\x1b[2J\x07\u202e'")
    assert printable("a\tb\x1b") == "a b?"
    report = with_findings(finding(source=evil))
    for text in (table([report]), Preflight([report]).to_html()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "?[2J??" in text
