"""The mark `replicas` in sessions of pytest: collection, and what is refused."""

import pytest
from support import TESTS, inner_pytest, python_path

IMPORTS = """
    import sys
    import pytest

    def test_no_import():
        names = ("tensorflow", "keras", "jax", "numpy")
        assert not [name for name in names if name in sys.modules]
"""


def test_plugin_imports_no_tensorflow(tmp_path):
    inner_pytest.write(tmp_path, test_m=IMPORTS)
    assert inner_pytest.run(tmp_path).counts() == {"passed": 1}


def test_entry_point_loads_the_plugin_once(tmp_path):
    info = tmp_path / "it-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: it\nVersion: 1\n")
    point = f"{inner_pytest.PLUGIN} = {inner_pytest.PLUGIN}"
    (info / "entry_points.txt").write_text(f"[pytest11]\n{point}\n")
    (info / "RECORD").write_text("tpu_estimator_compat/__init__.py,,\n")
    inner_pytest.write(tmp_path, test_m=IMPORTS)
    session = inner_pytest.run(
        tmp_path,
        *("-W", "error", "--strict-markers", "--markers"),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="",
        PYTHONPATH=python_path_with(tmp_path),
    )
    assert session.status == 0
    assert session.output.count("@pytest.mark.replicas(number, ...)") == 1


def test_an_installation_that_cannot_work_ends_pytest_with_words(tmp_path):
    for name in ("tensorflow", "tensorflow-cpu"):
        info = tmp_path / f"{name.replace('-', '_')}-2.20.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.20.0\n")
        (info / "RECORD").write_text("tensorflow/__init__.py,,\n")
    source = """
        def test_other():
            pass
    """
    inner_pytest.write(tmp_path, test_m=source)
    session = inner_pytest.run(tmp_path, PYTHONPATH=python_path_with(tmp_path))
    assert session.status
    assert "are both installed" in session.output


def python_path_with(folder) -> str:
    return python_path.joined(folder, TESTS.parent)


def test_numbers_are_parameters(tmp_path):
    source = """
        import pytest, unittest

        @pytest.mark.replicas(4)
        def test_one(): pass

        @pytest.mark.replicas(1, 2)
        @pytest.mark.parametrize("x", "ab")
        def test_two(x): pass

        @pytest.mark.replicas([1, 2])
        class TestC:
            def test_inherits(self, replicas): pass

            @pytest.mark.replicas(replicas=[8, 16])
            def test_has_its_own(self): pass

        @pytest.mark.replicas(replicas=3)
        class TestU(unittest.TestCase):
            def test_u(self): pass
    """
    inner_pytest.write(tmp_path, test_m=source)
    session = inner_pytest.run(tmp_path, "--collect-only", "-q", "--strict-markers")
    found = [line for line in session.output.splitlines() if "::" in line]
    assert sorted(found) == [
        "test_m.py::TestC::test_has_its_own[replicas=16]",
        "test_m.py::TestC::test_has_its_own[replicas=8]",
        "test_m.py::TestC::test_inherits[replicas=1]",
        "test_m.py::TestC::test_inherits[replicas=2]",
        "test_m.py::TestU::test_u",
        "test_m.py::test_one",
        "test_m.py::test_two[replicas=1-a]",
        "test_m.py::test_two[replicas=1-b]",
        "test_m.py::test_two[replicas=2-a]",
        "test_m.py::test_two[replicas=2-b]",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("0", "is 0: give a whole number from 1 on"),
        ("-1", "is -1"),
        ("'4'", "is '4'"),
        ("None", "is None"),
        ("2.0", "is 2.0"),
        ("True", "is True"),
        ("", "it names no number"),
        ("[]", "it names no number"),
        ("2, 2", "it names a number twice: [2, 2]"),
        ("[1, '2']", "is '2'"),
        ("count=4", "it has no argument count"),
    ],
)
def test_wrong_mark_is_an_error_of_the_collection(tmp_path, arguments, message):
    source = f"""
        import pytest

        @pytest.mark.replicas({arguments})
        def test_a(): pass
    """
    inner_pytest.write(tmp_path, test_m=source, test_good="def test_b(): pass")
    session = inner_pytest.run(tmp_path, "--continue-on-collection-errors")
    assert session.counts() == {"passed": 1, "error": 1}
    assert "test_m.py::test_a: the mark `replicas` is wrong: " in session.output
    assert message in session.output


def test_method_of_a_testcase_has_one_number(tmp_path):
    source = """
        import pytest, unittest

        class TestU(unittest.TestCase):
            @pytest.mark.replicas(1, 2)
            def test_u(self): pass
    """
    inner_pytest.write(tmp_path, test_m=source)
    session = inner_pytest.run(tmp_path)
    assert session.counts() == {"error": 1}
    assert "test_m.py::TestU::test_u: the mark `replicas` names 2 numbers" in session.output


@pytest.mark.parametrize(
    ("number", "parameter"),
    [
        ("1)\n        @pytest.mark.replicas(4", "0"),
        ("1, 2", "pytest.param(1, marks=pytest.mark.replicas(4))"),
    ],
)
def test_two_marks_of_a_test_are_an_error(tmp_path, number, parameter):
    source = f"""
        import pytest

        @pytest.mark.replicas({number})
        @pytest.mark.parametrize("x", [{parameter}])
        def test_a(x): pass
    """
    inner_pytest.write(tmp_path, test_m=source)
    session = inner_pytest.run(tmp_path)
    assert session.counts() == {"error": 1}
    assert ": two marks `replicas`" in session.output


def test_mark_that_comes_too_late_fails(tmp_path):
    conftest = """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name == "test_of_hook":
                    item.add_marker(pytest.mark.replicas(1, 8))

        @pytest.fixture
        def marks(request):
            request.node.add_marker(pytest.mark.replicas(1))
    """
    source = "def test_of_hook(): pass\ndef test_of_fixture(marks): pass"
    inner_pytest.write(tmp_path, conftest=conftest, test_m=source)
    session = inner_pytest.run(tmp_path)
    assert session.counts() == {"failed": 2}
    assert "test_of_hook: the mark `replicas` names 2 numbers" in session.output
    assert "a fixture added the mark `replicas`, which is too late" in session.output


def test_fixture_is_for_marked_tests(tmp_path):
    inner_pytest.write(tmp_path, test_m="def test_a(replicas): pass")
    session = inner_pytest.run(tmp_path)
    assert session.counts() == {"error": 1}
    assert "`replicas` is for tests with the mark" in session.output


def test_setup_alone_runs_no_test(tmp_path):
    source = """
        import pytest

        @pytest.mark.replicas(2)
        def test_a(replicas): assert 0
    """
    inner_pytest.write(tmp_path, test_m=source)
    for option in ("--setup-only", "--setup-plan"):
        session = inner_pytest.run(tmp_path, option)
        assert session.status == 0
        assert "test_m.py::test_a (fixtures used: replicas, request)" in session.output
