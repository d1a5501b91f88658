import pytest
from support.legacy_models import train_input_fn

from tpu_estimator_compat.estimator import EvalSpec, TrainSpec

from .remembering import Exporter


def test_listeners_of_another_type_are_refused():
    message = "All saving_listeners must be `CheckpointSaverListener` instances, given: 3"
    with pytest.raises(TypeError, match=message):
        TrainSpec(train_input_fn, saving_listeners=[3])


def test_an_exporter_whose_name_is_no_string_is_refused():
    with pytest.raises(ValueError, match="An Exporter must have a string name"):
        EvalSpec(train_input_fn, exporters=Exporter(3))
