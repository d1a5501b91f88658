"""Modules of TensorFlow's and the estimator's inside that 2.15 had and today's TensorFlow has not.

`private_modules.txt` lists them: what lay in the folders of the one and not of the other.
"""

import pathlib
import types

import pytest

from tpu_estimator_compat.old_names.legacy import imports, overlay
from tpu_estimator_compat.old_names.legacy.dialect import Dialect

MODULES = (pathlib.Path(__file__).parent / "private_modules.txt").read_text().split()


@pytest.mark.parametrize("dialect", Dialect)
def test_each_is_there_or_says_what_to_do(dialect):
    refused = []
    for name in MODULES:
        parent, _, last = name.rpartition(".")
        found = getattr(imports.imported(parent, (last,), dialect), last)
        assert isinstance(found, (types.ModuleType, overlay.Refused)), name
        if isinstance(found, overlay.Refused):
            refused.append(name)
            with pytest.raises(NotImplementedError, match=r"does not provide it\. \w+"):
                found.something()
    assert len(MODULES) > 180
    assert len(refused) < 50


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("tensorflow.core.profiler.protobuf.xplane_pb2", "XSpace XPlane XEventMetadata"),
        ("tensorflow.lite.python.lite", "TFLiteConverter Interpreter"),
        ("tensorflow.lite.toco.model_flags_pb2", "ModelFlags InputArray"),
        ("tensorflow.lite.toco.toco_flags_pb2", "TocoFlags"),
        ("tensorflow.python.eager.profiler", "start stop save Profiler start_profiler_server"),
        ("tensorflow.python.estimator.estimator_lib", "DNNClassifier stop_if_lower_hook Estimator"),
        ("tensorflow.tsl.protobuf.test_log_pb2", "TestResults MachineConfiguration"),
        ("tensorflow.tsl.protobuf.error_codes_pb2", "Code OK CANCELLED"),
    ],
)
def test_names_in_them(module, names):
    for name in names.split():
        assert hasattr(imports.imported(module, tuple(names.split()), Dialect.V1), name)


@pytest.mark.parametrize("name", ["tensorflow.lite.python.nothing", "tensorflow.tsl.nothing"])
def test_what_was_never_there_is_not_there(name):
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        imports.imported(name, ("x",), Dialect.V1)
