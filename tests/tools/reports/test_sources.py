from tpu_estimator_compat.engine.graph.source_line import Source
from tpu_estimator_compat.tools.reports.sources import place, printable


def test_files_below_the_working_directory_are_named_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert place(SourceLine(str(tmp_path / "a" / "model.py"), 7)) == "a/model.py:7"
    assert place(SourceLine("/home/someone/model.py", 7)) == "~/model.py:7"
    assert place(SourceLine("/elsewhere/model.py", 7)) == "/elsewhere/model.py:7"
    assert place(SourceLine(f"{tmp_path}_2/model.py", 7)) == f"{tmp_path}_2/model.py:7"


def test_a_line_has_no_control_characters():
    assert printable("a\tb\x1b") == "a b?"
