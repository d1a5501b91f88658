"""Plugin of pytest: the mark `replicas`, the fixtures `replicas` and `golden`, `--update-golden`.

Pytest loads it wherever this package is installed, so it imports nothing of TensorFlow. To leave it
out, give pytest `-p no:tpu_estimator_compat.testing.plugin`. PYTEST_DONT_REWRITE: it has no tests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from tpu_estimator_compat.testing import marks
from tpu_estimator_compat.testing.golden import fixture

if TYPE_CHECKING:
    from tpu_estimator_compat.testing.golden.fixture import Golden

_NUMBER = pytest.StashKey[int]()
"""In a test: the number of replicas that it runs on."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tpu_estimator_compat")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="Write the files of the fixture `golden` anew, where values have changed.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", marks.DESCRIPTION)
    config.pluginmanager.register(fixture.GoldenSummary(config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks.parametrize(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Reports wrong marks as errors of the collection."""
    report = yield
    found = [child for child in report.result or () if isinstance(child, pytest.Item)]
    faults = dict.fromkeys(fault for item in found if (fault := marks.fault(item)))
    if not faults:
        return report
    return pytest.CollectReport(collector.nodeid, "failed", "\n".join(faults), [])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a marked test, with its fixtures, on its number of replicas."""
    number = None if marks.fault(item) else marks.number_of(item)
    if number is None or item.config.option.setuponly:  # or setupplan: nothing is called
        return (yield)
    from tpu_estimator_compat.testing import devices  # it imports TensorFlow

    item.stash[_NUMBER] = number
    with devices.exactly(number):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fails a test that has not got its number of replicas."""
    if wrong := marks.fault(item):  # of a mark that a hook added after collection
        pytest.fail(wrong, pytrace=False)
    if marks.number_of(item) != item.stash.get(_NUMBER, None):
        pytest.fail(
            "a fixture added the mark `replicas`, which is too late: add it to the test, or in "
            "the hook pytest_collection_modifyitems",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fixture.attach(item, report)
    return report


@pytest.fixture(scope="session")
def replicas(request: pytest.FixtureRequest) -> int:
    """The number of replicas that the mark `replicas` gives this test."""
    if not hasattr(request, "param"):  # or the mark came after pytest had read it
        pytest.fail("`replicas` is for tests with the mark @pytest.mark.replicas(4)", pytrace=False)
    return int(request.param)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Compares values with those that a file beside the test has.

    `golden(value, name=None, rtol=1e-5, atol=1e-8)` fails, with a table of differences, where they
    differ. `pytest --update-golden` writes the file, `golden/MODULE/TEST.json`.
    """
    yield from fixture.fixture(request)
