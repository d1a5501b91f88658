from __future__ import annotations

import pytest
from support.legacy_models import train_input_fn

from tpu_estimator_compat import estimator as namespace

from .remembering import Exporter

TrainSpec, EvalSpec = namespace.TrainSpec, namespace.EvalSpec


BAD = {
    "input_fn": (lambda: TrainSpec("data"), TypeError, "`input_fn` must be callable, given: data"),
    "max_steps": (
        lambda: TrainSpec(train_input_fn, max_steps=0),
        ValueError,
        "Must specify max_steps > 0, given: 0",
    ),
    "hooks": (
        lambda: TrainSpec(train_input_fn, hooks=[3]),
        TypeError,
        "All hooks must be `SessionRunHook` instances, given: 3",
    ),
    "listeners": (
        lambda: TrainSpec(train_input_fn, saving_listeners=[3]),
        TypeError,
        "All saving_listeners must be `CheckpointSaverListener` instances, given: 3",
    ),
    "steps": (
        lambda: EvalSpec(train_input_fn, steps=0),
        ValueError,
        "Must specify steps > 0, given: 0",
    ),
    "name": (
        lambda: EvalSpec(train_input_fn, name=3),
        TypeError,
        "`name` must be string, given: 3",
    ),
    "start_delay_secs": (
        lambda: EvalSpec(train_input_fn, start_delay_secs=-1),
        ValueError,
        "Must specify start_delay_secs >= 0, given: -1",
    ),
    "throttle_secs": (
        lambda: EvalSpec(train_input_fn, throttle_secs=-1),
        ValueError,
        "Must specify throttle_secs >= 0, given: -1",
    ),
    "exporters": (
        lambda: EvalSpec(train_input_fn, exporters=[3]),
        TypeError,
        "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found",
    ),
    "no iterable": (
        lambda: EvalSpec(train_input_fn, exporters=3),
        TypeError,
        "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found 3",
    ),
    "no name": (
        lambda: EvalSpec(train_input_fn, exporters=Exporter(None)),
        ValueError,
        "An Exporter cannot have a name that is `None` or empty",
    ),
    "name of another type": (
        lambda: EvalSpec(train_input_fn, exporters=Exporter(3)),
        ValueError,
        "An Exporter must have a string name",
    ),
    "two of one name": (
        lambda: EvalSpec(train_input_fn, exporters=[Exporter("a"), Exporter("a")]),
        ValueError,
        "`exporters` must have unique names",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_specs_refuse_what_the_original_refused(case):
    make, error, words = BAD[case]
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


def test_defaults_are_those_of_the_original():
    assert TrainSpec(train_input_fn)[1:] == (None, (), ())
    assert EvalSpec(train_input_fn)[1:] == (100, None, (), (), 120, 600)
    exporter = Exporter()
    assert EvalSpec(train_input_fn, exporters=exporter).exporters == (exporter,)
