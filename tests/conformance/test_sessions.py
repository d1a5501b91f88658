"""The same scenarios with `runtime="session"`: the original's loops on today's TensorFlow."""

import hashlib

import pytest
from support.sharing import shared
from support.sides import comparing, running

from . import setting
from .differences import unexpected

pytestmark = [pytest.mark.slow, pytest.mark.parity]
NAMES = [name for name in setting.names() if not setting.has_replicas(name)]


@pytest.fixture(scope="session")
def observed(request, original, tmp_path_factory):
    names = sorted(running.asked_for(request.session, "conformance", "of_session"))

    def make(root):
        running.run_together(
            (running.of_original(original, "conformance"), names, root / "original"),
            (
                running.of_ours(
                    tmp_path_factory,
                    "conformance",
                    environment={"TPU_ESTIMATOR_COMPAT_RUNTIME": "session"},
                ),
                names,
                root / "session",
            ),
        )

    key = hashlib.sha256(repr(names).encode()).hexdigest()[:8]
    root = shared(tmp_path_factory, f"conformance-sessions-{key}", make)
    return {
        name: (running.answer(root / "original", name), running.answer(root / "session", name))
        for name in names
    }


@pytest.mark.parametrize("of_session", NAMES)
def test_a_session_does_the_same(observed, of_session):
    original, session = observed[of_session]
    found = comparing.differences(original, session)
    comparing.assert_none(unexpected(of_session, found))
