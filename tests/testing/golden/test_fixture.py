"""The fixture `golden` in sessions of pytest."""

import functools

import pytest
from support import inner_pytest

XDIST = ("-p", "xdist", "-n2")

MODULE = """
    import os

    import numpy as np
    import pytest

    LOSS = float(os.environ.get("LOSS", "0.5"))

    def test_one(golden):
        golden({"loss": LOSS, "p": np.ones(2, np.float32)})

    @pytest.mark.parametrize("text", ["a", "x/y"])
    def test_names(golden, text):
        golden(LOSS, name="after 3 steps", rtol=0.2)
        golden(text, name="text")
"""


@pytest.fixture
def folder(tmp_path):
    inner_pytest.write(tmp_path, test_m=MODULE)
    return tmp_path


@pytest.fixture
def run(folder):
    return functools.partial(inner_pytest.run, folder)


def test_file_that_is_missing_fails_and_names_the_option(run, folder):
    session = run("-rA", CI="1")
    assert session.counts() == {"failed": 3}
    assert "golden/test_m/test_one.json is not there" in session.output
    assert "pytest 'test_m.py::test_names[x/y]' --update-golden" in session.output
    assert "golden_values" not in session.output  # no line of this package's is shown
    assert not (folder / "golden").exists()


def test_update_writes_and_later_runs_compare(run, folder):
    session = run("--update-golden", CI="1")
    assert session.counts() == {"passed": 3}
    assert "new: golden/test_m/test_one.json" in session.output
    assert "new: golden/test_m/test_names[a].json [after 3 steps]" in session.output
    names = {"test_one.json", "test_names[a].json", "test_names[x%2fy].json"}
    assert {path.name for path in (folder / "golden" / "test_m").iterdir()} == names
    assert run().counts() == {"passed": 3}


def test_difference_is_a_table_with_the_command(run):
    run("--update-golden")
    session = run("-rA", LOSS="0.55")
    assert session.outcome("test_one") == "FAILED"
    assert session.outcome("test_names[a]") == "PASSED"  # by its tolerance
    said = "".join(line.removeprefix("E  ") for line in session.output.splitlines(keepends=True))
    assert "a value is not that of golden/test_m/test_one.json" in said
    assert ["loss", "0.5", "0.55", "0.1"] in [line.split() for line in said.splitlines()]
    assert "pytest test_m.py::test_one --update-golden" in said
    assert ">       golden({" in said


def test_update_says_what_changed_and_leaves_the_rest(run, folder):
    run("--update-golden")
    other = folder / "golden" / "test_m" / "test_names[a].json"
    before = other.stat().st_mtime_ns
    session = run("--update-golden", LOSS="0.55")
    assert "changed: golden/test_m/test_one.json" in session.output
    assert ["loss", "0.5", "0.55", "0.1"] in [line.split() for line in session.output.splitlines()]
    assert "test_names" not in session.output
    assert other.stat().st_mtime_ns == before
    assert run(LOSS="0.55").counts() == {"passed": 3}


def test_update_without_changes_says_so(run):
    run("--update-golden")
    assert "all values are as they were" in run("--update-golden").output


def test_workers_of_xdist_write_and_report(run, folder):
    session = run(*XDIST, "--update-golden")
    assert session.counts() == {"passed": 3}
    assert "new: golden/test_m/test_one.json" in session.output
    assert run(*XDIST).counts() == {"passed": 3}


def test_damaged_file_is_an_error(run, folder):
    run("--update-golden")
    path = folder / "golden" / "test_m" / "test_one.json"
    path.write_text(path.read_text() + "<<<<<<< HEAD\n")
    session = run("--update-golden", "-k", "test_one")
    assert session.counts()["failed"] == 1
    assert "test_one.json is damaged: Extra data: line 7" in session.output


def test_name_given_twice_is_an_error(run, folder):
    source = """
        def test_twice(golden):
            golden(1, name="a")
            golden(1, name="a")

        def test_two_without_name(golden):
            golden(1)
            golden(2)
    """
    inner_pytest.write(folder, test_m=source)
    session = run("--update-golden")
    assert session.counts()["failed"] == 2
    assert "gives 'a' twice" in session.output
    assert "two values without a name" in session.output


def test_values_that_a_passing_test_no_longer_gives_are_an_error(run, folder):
    run("--update-golden")
    source = """
        def test_one(golden):
            for loss in []:
                golden(loss)

        def test_skips(golden):
            import pytest
            pytest.skip("it gives none")
    """
    inner_pytest.write(folder, test_m=source)
    path = folder / "golden" / "test_m" / "test_one.json"
    path.with_name("test_skips.json").write_text(path.read_text())
    session = run()
    assert session.counts() == {"passed": 1, "skipped": 1, "error": 1}
    assert "test_one.json has values that the test did not give: the one without" in session.output


def test_files_are_beside_modules_that_are_not_below_the_root(run, folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        inner_pytest.write(folder / name, test_m=f"def test_one(golden): golden({name!r})")
    (folder / "root").mkdir()
    options = ("--rootdir=root", "--import-mode=importlib", "a", "b")
    assert run("--update-golden", *options).counts() == {"passed": 2}
    assert run(*options).counts() == {"passed": 2}
    for name in ("a", "b"):
        assert f'["str", "{name}"]' in (folder / name / "golden/test_m/test_one.json").read_text()


def test_test_that_fails_before_its_value_keeps_the_file(run, folder):
    run("--update-golden")
    inner_pytest.write(folder, test_m="def test_one(golden):\n    assert 0")
    path = folder / "golden" / "test_m" / "test_one.json"
    before = path.read_text()
    assert run("--update-golden").counts()["failed"] == 1
    assert path.read_text() == before
