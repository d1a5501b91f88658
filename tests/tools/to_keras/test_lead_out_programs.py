"""Models of `to-keras`' users: written files against the originals, with Keras alone."""

import dataclasses

import pytest
from support.to_keras import harness

TIED = 1e-5  # outputs
GOES_ON = 1e-4  # losses of the next 50 steps
OF_KERAS = 20
"""Lines that a file which trains has besides: the heads of its methods, `make_model`, metrics."""


@dataclasses.dataclass(frozen=True)
class Expected:
    """Of a program: where it trains as the original, what the report names, relative lines."""

    trains: tuple[str, ...] = ("tensorflow", "jax", "torch")
    named: str = ""
    lines: float = 1.3
    often: bool = False
    torch: bool = False


ON_TENSORFLOW = ("tensorflow",)
"""JAX has no gradient of a loop without a known end, and norms of added-up rows of embeddings."""

PROGRAMS = {
    "mlp": Expected(torch=True),
    "convnet": Expected(torch=True),
    "resnet": Expected(often=True),
    "decoder": Expected(lines=1.8, torch=True),
    "rnn": Expected(trains=ON_TENSORFLOW),
    "rnn:cell=gru": Expected(trains=ON_TENSORFLOW),
    "rnn:layers=2:dropout=0.2": Expected(trains=ON_TENSORFLOW),
    "rnn:both=True": Expected(trains=ON_TENSORFLOW, lines=1.5),
    "wide_deep": Expected(trains=(), lines=4.1),  # the author's are feature columns alone
    "gan": Expected(trains=()),
    "recommender": Expected(lines=1.5),
    "attention": Expected(lines=1.5),
    "separable": Expected(),
    "slim_net": Expected(),
    "loops": Expected(trains=ON_TENSORFLOW, often=True),
    "bert": Expected(trains=()),
    "albert": Expected(trains=ON_TENSORFLOW),
}
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow if each.often else pytest.mark.full])
    for name, each in PROGRAMS.items()
]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_led_out(name, tmp_path, request):
    expected = PROGRAMS[name]
    needs = name in harness.NEED_CLIENTS
    clients = request.getfixturevalue("clients") if needs else None
    harness.prepare(tmp_path, [name], clients)
    for kind in ("saved", "script"):
        status = harness.lead_out(tmp_path, name, kind, clients)
        log = (harness.folder_of(tmp_path, name) / kind / "log").read_text()
        assert status == 0, log[-3000:]
        assert kind == "saved" or expected.named in log
        least = OF_KERAS if kind == "script" else 0
        own = harness.author_lines(name, clients)
        assert harness.written_lines(tmp_path, name, kind) <= expected.lines * own + least, kind
    packages = {"tensorflow": None, "jax": None}
    if expected.torch:
        packages["torch"] = harness.torch()
    for backend, folder in packages.items():
        harness.run_alone(tmp_path, [name], backend, folder)
        for kind in ("saved", "script"):
            found = harness.found(tmp_path, name, kind, backend)
            if kind == "script" and backend not in expected.trains:
                found.pop("error", None)
            losses = found.pop("losses", None)
            after = found.pop("after", None)
            assert found.keys() == {"outputs", "loaded", "jit"}, found
            assert max(found.values()) <= TIED, found
            if kind == "script" and backend in expected.trains:
                assert losses <= GOES_ON
                assert after <= 10 * GOES_ON
