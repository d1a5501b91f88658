import dataclasses

import pytest
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat.keras_model import variable_table


@dataclasses.dataclass
class Variable:
    """What a table needs of a variable."""

    path: str
    shape: tuple[int, ...]
    trainable: bool = True


ENCODER = [
    Variable("encoder/layer_0/kernel", (64, 32)),
    Variable("global_step", (), trainable=False),
    Variable("encoder/layer_0/kernel/Adam", (64, 32), trainable=False),
    Variable("encoder/layer_1/kernel", (1, 1000)),
    Variable("encoder/layer_0/bias", (32,)),
]


def test_scopes_hold_their_variables_and_those_not_trained_come_last():
    assert variable_table.as_text("encoder", ENCODER).splitlines() == [
        'Model: "encoder"',
        "-" * 42,
        "Variable                 Shape      Params",
        "-" * 42,
        "encoder/layer_0/                     2,080",
        "  kernel                 (64, 32)    2,048",
        "  bias                   (32,)          32",
        "encoder/layer_1/                     1,000",
        "  kernel                 (1, 1000)   1,000",
        "global_step              ()              1",
        "encoder/layer_0/kernel/              2,048",
        "  Adam                   (64, 32)    2,048",
        "-" * 42,
        "Total params: 5,129",
        "Trainable params: 3,080",
        "Non-trainable params: 2,049",
    ]


def test_width_and_trainable():
    lines = variable_table.as_text("e", ENCODER[:2], width=60, show_trainable=True).splitlines()
    assert lines[1] == "-" * 60
    assert [line.split()[-1] for line in lines[4:7]] == ["2,048", "yes", "no"]


def test_a_model_shows_what_its_model_fn_made(tmp_path, capsys):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    model.summary()
    told = capsys.readouterr().out
    for variable in model.variables:
        *scope, name = variable.path.split("/")
        assert name in told
        assert "/".join([*scope, ""]) in told
        assert str(tuple(variable.shape)) in told
    assert f"Total params: {model.count_params():,}" in told
    lines = []
    model.summary(print_fn=lines.append)
    assert "\n".join(lines) + "\n" == told


def test_a_model_without_variables_says_how_to_get_them(tmp_path, capsys):
    model = make_estimator(tmp_path / "model").keras_model()
    model.summary()
    assert "It has no variables yet. Make it with keras_model(input_fn)" in capsys.readouterr().out
    with pytest.raises(ValueError, match="This model has no variables yet"):
        model.save_weights(str(tmp_path / "w.weights.h5"))
    assert not (tmp_path / "w.weights.h5").exists()
