import io
import sys

from tpu_estimator_compat.tools.commands import progress


class Stream(io.StringIO):
    terminal = True

    def isatty(self):
        return self.terminal


def test_a_terminal_has_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Stream())
    told = progress.Progress()
    told("a run", ": step 1")
    told("a run", ": step 2")
    told.clear()
    shown = stream.getvalue()
    assert "a run: step 2" in shown
    # The line is taken away, and what follows stands in its place.
    assert shown.rpartition("a run: step 2")[2].endswith("\x1b[1A\x1b[2K")


def test_elsewhere_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Stream())
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream.terminal = False
    told = progress.Progress()
    for seconds in (0, 1, 31, 32, 63):
        now[0] = 100.0 + seconds
        told("a run", f": step {seconds}")
    told.clear()
    assert stream.getvalue() == "a run …\na run: step 31\na run: step 63\n"
