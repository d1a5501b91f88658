"""Tests with the mark `replicas`, run: what pytest reports of them is what it would of any test."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest
from support import inner_pytest

pytestmark = pytest.mark.slow  # each session imports TensorFlow in a process

CONFTEST = """
    import json, os, pathlib
    import pytest

    @pytest.fixture(scope="session", params=["p"])
    def of_session(request, replicas):
        yield replicas
        print("end of of_session")

    @pytest.fixture(scope="module")
    def of_module(replicas):
        yield replicas

    @pytest.fixture
    def broken():
        raise ValueError("the fixture is broken")

    @pytest.fixture
    def broken_end():
        yield
        raise ValueError("the end is broken")
"""

MODULE = """
    import ctypes, logging, os, signal, sys, unittest, warnings
    import pytest
    import tensorflow as tf

    def cpus():
        return len(tf.config.list_logical_devices("CPU"))

    @pytest.fixture(scope="module", autouse=True)
    def log():
        with open("log", "a") as file:
            print("begin", os.getpid(), file=file)
        yield
        with open("log", "a") as file:
            print("end", os.getpid(), file=file)

    def test_before():
        assert cpus() == 1

    @pytest.mark.replicas([1, 3])
    @pytest.mark.parametrize("x", ["a::b[c]/d", "é\\n"])
    def test_count(replicas, x, tmp_path, of_session, of_module):
        assert cpus() == replicas == of_session == of_module
        assert not tf.config.list_logical_devices("GPU")
        tmp_path.joinpath("file").write_text(x)

    @pytest.mark.replicas(4)
    def test_jax():
        jax = pytest.importorskip("jax")
        assert [d.platform for d in jax.devices()] == ["cpu"] * 4

    @pytest.mark.replicas(2)
    class TestOutput:
        def test_passes(self, capsys):
            print("to capsys")
            assert capsys.readouterr().out == "to capsys\\n"
            print("said by test_passes")
            os.system("echo said by a process")
            logging.getLogger("a").warning("logged by test_passes")

        def test_fails(self, record_property):
            record_property("what", ("a", 1))
            print("said by test_fails", file=sys.stderr)
            values = [1, 2]
            assert values == [1, 3]

    @pytest.mark.replicas(2)
    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.value = cpus()

        def test_unit(self):
            self.assertEqual(self.value, 2)

    @pytest.mark.replicas(2)
    class TestTF(tf.test.TestCase):
        def test_tf(self):
            self.assertAllClose(tf.ones(2), [1, 1])
            self.assertEqual(cpus(), 2)

        def test_tf_fails(self):
            self.assertAllClose(tf.ones(2), [1, 2])

    @pytest.mark.replicas(2)
    @pytest.mark.skip(reason="by mark")
    def test_skip(): pass

    @pytest.mark.replicas(2)
    def test_skips():
        pytest.skip("on the way")

    @pytest.mark.replicas(2)
    @pytest.mark.xfail(reason="known")
    def test_xfail():
        assert 0

    @pytest.mark.replicas(2)
    @pytest.mark.xfail(strict=True)
    def test_xpass(): pass

    @pytest.mark.replicas(2)
    def test_broken(broken): pass

    @pytest.mark.replicas(2)
    def test_broken_end(broken_end): pass

    @pytest.mark.replicas(2)
    def test_warns():
        warnings.warn("warned by test_warns", DeprecationWarning)

    @pytest.mark.replicas(2)
    @pytest.mark.filterwarnings("error")
    def test_warning_is_error():
        warnings.warn("an error", DeprecationWarning)

    @pytest.mark.replicas(2)
    def test_exits():
        print("said by test_exits")
        os._exit(3)

    @pytest.mark.replicas(2)
    def test_killed():
        print("said by test_killed")
        os.kill(os.getpid(), signal.SIGKILL)

    @pytest.mark.replicas(2)
    def test_crashes():
        ctypes.string_at(0)

    def test_after():
        assert cpus() == 1
"""

FAILED = {
    "test_fails",
    "test_tf_fails",
    "test_xpass",
    "test_warning_is_error",
    "test_exits",
    "test_killed",
    "test_crashes",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replica_tests")
    inner_pytest.write(folder, conftest=CONFTEST, test_m=MODULE)
    return folder


@pytest.fixture(scope="module")
def session(folder):
    args = ("-rA", "--strict-markers", "--junitxml=out.xml", "--durations=0", "--durations-min=0")
    return inner_pytest.run(folder, *args)


def section(output: str, title: str) -> str:
    """What a session's output has of one test."""
    found = output.partition(f" {title} _")[2]
    assert found, f"no section {title}"
    return found.partition("\n____")[0]


def test_outcomes_are_those_of_any_test(session):
    assert session.counts() == {
        "failed": len(FAILED),
        "passed": 12,
        "skipped": 3,  # among them `test_session`, which `tf.test.TestCase` has
        "xfailed": 1,
        "errors": 2,
        "warning": 1,
    }
    for name in FAILED:
        assert session.outcome(name) == "FAILED"
    assert "ERROR test_m.py::test_broken - ValueError: the fixture is broken" in session.output
    assert "ERROR test_m.py::test_broken_end - ValueError: the end is broken" in session.output
    assert "SKIPPED [1] test_m.py:" in session.output
    assert "on the way" in session.output


def test_failure_has_its_lines_values_and_output(session):
    said = section(session.output, "TestOutput.test_fails")
    assert ">       assert values == [1, 3]" in said
    assert "At index 1 diff: 2 != 3" in said
    assert "Captured stderr call" in said
    assert "said by test_fails" in said


def test_passed_test_has_its_output(session):
    said = section(session.output, "TestOutput.test_passes")
    for words in ("said by test_passes", "said by a process", "logged by test_passes"):
        assert words in said


def test_process_that_ends_is_a_failure_that_says_how(session):
    exits = section(session.output, "test_exits")
    assert "with 2 replicas, ended with exit status 3. Its last output:" in exits
    assert "said by test_exits" in exits
    killed = section(session.output, "test_killed")
    assert "ended by signal 9 (SIGKILL)" in killed
    assert "said by test_killed" in killed
    crashes = section(session.output, "test_crashes")
    assert "ended by signal 11 (SIGSEGV)" in crashes
    assert "Fatal Python error: Segmentation fault" in crashes
    assert "in test_crashes" in crashes


def test_warnings_are_in_the_summary(session):
    assert session.output.count("DeprecationWarning: warned by test_warns") == 1


def test_fixtures_of_this_process_end_with_their_module(session, folder):
    events = [line.split() for line in (folder / "log").read_text().splitlines()]
    here = [event for event, pid in events if pid == events[0][1]]
    assert here == ["begin", "end"]
    assert events[-1] == ["end", events[0][1]]


def test_junit_report_has_all_tests(session, folder):
    cases = list(xml.etree.ElementTree.parse(folder / "out.xml").iter("testcase"))
    assert len(cases) == 24
    properties = xml.etree.ElementTree.parse(folder / "out.xml").iter("property")
    assert [(each.get("name"), each.get("value")) for each in properties] == [("what", "('a', 1)")]


def test_last_failed_are_those_that_failed(session, folder):
    [path] = folder.glob(".pytest_cache/v/cache/lastfailed")
    names = {test.rpartition("::")[2] for test in json.loads(path.read_text())}
    assert names == {*FAILED, "test_broken", "test_broken_end"}


SELECTED = "test_count or test_jax or TestOutput or test_exits or test_before or test_after"


def test_workers_of_xdist_run_them(tmp_path):
    inner_pytest.write(tmp_path, conftest=CONFTEST, test_m=MODULE)  # whose log is its own
    session = inner_pytest.run(tmp_path, "-p", "xdist", "-n2", "-rA", "-k", SELECTED)
    assert session.counts() == {"failed": 2, "passed": 8}
    assert "said by test_exits" in section(session.output, "test_exits")


SMALL = """
    import os, pathlib, time
    import pytest

    @pytest.mark.replicas(2)
    def test_golden(golden):
        golden(1.5)

    @pytest.mark.replicas(2)
    def test_prints(replicas):
        print("printed by test_prints", os.environ.get("PYTEST_XDIST_WORKER"))
        assert replicas == 2

    @pytest.mark.replicas(2)
    def test_fails():
        assert 0

    @pytest.mark.replicas(2)
    def test_later(): pass

    @pytest.mark.replicas(2)
    def test_ends_the_session():
        pytest.exit("by a test", returncode=7)

    @pytest.mark.replicas(2)
    def test_sleeps():
        pathlib.Path("pid").write_text(f"{os.getpid()} {os.getppid()}")
        time.sleep(600)

    @pytest.mark.replicas(3)
    def test_of_three(): pass
"""


@pytest.fixture
def small(tmp_path):
    inner_pytest.write(tmp_path, test_s=SMALL)
    return tmp_path


def test_first_failure_can_end_the_session_with_output_shown_live(small):
    session = inner_pytest.run(small, "-x", "-s", "--update-golden")
    assert session.counts() == {"failed": 1, "passed": 2}
    assert "new: golden/test_s/test_golden.json" in session.output
    assert "printed by test_prints None" in session.output
    assert "test session starts" not in session.output.partition("test session starts")[2]


def test_exit_in_a_test_ends_the_session(small):
    session = inner_pytest.run(small, "-k", "ends_the_session")
    assert session.status == 7
    assert "Exit: by a test" in session.output


def test_variables_of_a_module_and_the_seed_reach_the_processes(tmp_path):
    source = """
        import os, pathlib
        import pytest

        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # before TensorFlow is imported

        def test_here(pytestconfig):
            pathlib.Path("seed").write_text(str(pytestconfig.option.randomly_seed))

        @pytest.mark.replicas(2)
        def test_there(pytestconfig):
            assert pathlib.Path("seed").read_text() == str(pytestconfig.option.randomly_seed)
            with open(f"/proc/{os.getppid()}/environ", "rb") as file:
                assert b"TF_ENABLE_ONEDNN_OPTS=0" in file.read().split(b"\\0")
    """
    inner_pytest.write(tmp_path, test_m=source)
    args = ("-p", "pytest_randomly", "--randomly-dont-reorganize")
    assert inner_pytest.run(tmp_path, *args).counts() == {"passed": 2}


def test_modules_outside_of_the_root_have_their_tests(small, tmp_path):
    inside = tmp_path / "root"
    inside.mkdir()
    session = inner_pytest.run(inside, "--rootdir=.", str(small), "-k", "prints", "-rA")
    assert session.counts() == {"passed": 1, "deselected": 6}


def test_debugger_has_the_test_in_the_process_itself(small):
    source = """
        import pytest
        import tensorflow as tf

        tf.constant(1.0)

        @pytest.mark.replicas(2)
        def test_two(replicas):
            assert replicas == len(tf.config.list_logical_devices("CPU")) == 2
            assert pytest.config_is_here

        @pytest.mark.replicas(3)
        def test_three(): pass
    """
    inner_pytest.write(small, test_s=source, conftest="import pytest\npytest.config_is_here = True")
    session = inner_pytest.run(small, "--pdb", "-rA")
    assert session.outcome("test_two") == "PASSED"
    assert "had one of other replicas before: run this test alone" in session.output


def start_sleeping(folder) -> tuple[subprocess.Popen, list[int]]:
    """A session, and the processes of its test and its server."""
    words = [sys.executable, "-m", "pytest", "-p", inner_pytest.PLUGIN, "-k", "sleeps"]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(folder),
    }
    with (folder / "out").open("w") as out:
        session = subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=out)
    while not (folder / "pid").exists() or not (folder / "pid").read_text():
        assert session.poll() is None
        time.sleep(0.05)
    return session, list(map(int, (folder / "pid").read_text().split()))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 2), (signal.SIGKILL, -9)])
def test_session_that_is_ended_leaves_no_process(small, number, status):
    session, pids = start_sleeping(small)
    assert list(small.glob("forks_*"))
    session.send_signal(number)
    assert session.wait(60) == status
    end = time.monotonic() + 60
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
    assert not list(small.glob("forks_*"))


def test_legacy_tests_have_replicas_under_the_command_run(tmp_path):
    source = """
        import pytest
        import tensorflow as tf

        class LegacyTest(tf.test.TestCase):
            @pytest.mark.replicas(2)
            def test_layers(self):
                with self.test_session() as session:
                    y = tf.layers.dense(tf.ones([2, 2]), 1)
                    session.run(tf.global_variables_initializer())
                    self.assertEqual(session.run(y).shape, (2, 1))
                self.assertEqual(len(tf.config.list_logical_devices("CPU")), 2)
    """
    inner_pytest.write(tmp_path, test_m=source)
    words = ["tpu_estimator_compat", "run", "-m", "pytest", "-p", inner_pytest.PLUGIN]
    done = subprocess.run(
        [sys.executable, "-m", *words, "-k", "layers"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert inner_pytest.Session(done.returncode, done.stdout).counts()["passed"] == 1, done.stdout
