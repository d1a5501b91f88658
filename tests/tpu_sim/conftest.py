"""Which scenarios the selected tests ask for."""

import pathlib

from tpu_sim import running


def pytest_collection_finish(session):
    """Where all tests of this folder are of some scenario, no other scenario is run."""
    here = pathlib.Path(__file__).parent
    tests = [item for item in session.items if here in item.path.parents]
    given = [getattr(item, "callspec", None) for item in tests]
    if given and all(each and "scenario" in each.params for each in given):
        running.wanted = {each.params["scenario"] for each in given}
