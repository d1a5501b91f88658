import pytest

import tpu_estimator_compat.v1 as tf

HParams = tf.contrib.training.HParams


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate", "Malformed hyperparameter value: rate"),
        ("rate=high", "Could not parse hparam 'rate' of type 'float' with value 'high'"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("units[0]=1,units[0]=2", r"Multiple assignments to variable 'units\[0\]'"),
        ("units=[1],units[0]=2", "Multiple assignments"),
        ("units[0]=[1]", "Assignment of a list to a list index"),
        ("units=1", "Must pass a list for multi-valued parameter: units"),
        ("rate=[1,2]", "Must not pass a list for single-valued parameter: rate"),
        ("speed=1", "Unknown hyperparameter type for speed"),
        ("on=maybe", "Could not parse hparam 'on' of type 'bool'"),
    ],
)
def test_text_of_hyperparameters(text, message):
    with pytest.raises(ValueError, match=message):
        HParams(rate=0.1, units=[1, 2], on=True).parse(text)


def test_types_of_hyperparameters():
    hparams = HParams(rate=0.1, count=1, on=True, name="a")
    for name, value in (("count", 1.5), ("on", 1), ("name", 3), ("rate", "1"), ("rate", True)):
        with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
            hparams.set_hparam(name, value)
    with pytest.raises(KeyError):
        hparams.set_hparam("missing", 1)
    with pytest.raises(ValueError, match="reserved: rate"):
        hparams.add_hparam("rate", 1)
    with pytest.raises(ValueError, match="cannot be empty"):
        hparams.add_hparam("more", [])
    with pytest.raises(ValueError, match="incompatible with default"):
        hparams.get("rate", [1])
    with pytest.raises(NotImplementedError, match="to_json"):
        HParams(hparam_def=object())
