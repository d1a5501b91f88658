import pytest

import tpu_estimator_compat as tpu


def model_fn(features, labels, mode, params):
    raise NotImplementedError


def made(members, name="TPUEstimator", base=tpu.TPUEstimator):
    cls = type(name, (base,), members)
    return cls(model_fn, config=tpu.RunConfig(), use_tpu=False, train_batch_size=1)


def test_a_copy_of_the_original_may_not_redefine_what_nobody_calls():
    with pytest.raises(NotImplementedError, match=r"overrides \['_augment_model_fn'"):
        made({"_augment_model_fn": lambda self: None})
    with pytest.raises(NotImplementedError, match=r"_call_input_fn.*in place of a copy"):
        made({"_call_input_fn": lambda self: None, "train": lambda self: None})
    with pytest.raises(NotImplementedError, match=r"overrides \['_call_model_fn'"):
        made({"_call_model_fn": lambda self: None})
    assert made({"train": lambda self: "mine"}).train() == "mine"  # the original let that name


def test_what_the_original_let_be_redefined_and_is_not_called_here_is_refused():
    with pytest.raises(NotImplementedError, match="_create_and_assert_global_step"):
        made({"_create_and_assert_global_step": lambda self, graph: None}, "Mine")


def test_names_of_our_own_are_members_too():
    with pytest.raises(ValueError, match=r"does override \['_mode_rules'\]"):
        made({"_mode_rules": lambda self: None}, "Mine")
