"""Subclasses of hooks that are known: what changes a turn does not change when it is due."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Calls, make_estimator, train_input_fn


class KeepsLosses(tf.train.LoggingTensorHook):
    def __init__(self, told):
        super().__init__(["loss"], every_n_iter=7)
        self.told = told

    def begin(self):
        self._tensors = {"loss": tf.get_collection(tf.GraphKeys.LOSSES)[-1]}
        super().begin()

    def _log_tensors(self, tensor_values):
        super()._log_tensors(tensor_values)
        self.told.append((self._iter_count, float(tensor_values["loss"])))


class KeepsSteps(tf.train.StepCounterHook):
    def __init__(self, told):
        super().__init__(every_n_steps=7)
        self.told = told

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        self.told.append((elapsed_steps, int(global_step)))


class TellsOfSaves(tf.train.CheckpointSaverHook):
    def __init__(self, told, folder):
        super().__init__(folder, save_steps=7)
        self.told = told

    def _save(self, session, step):
        self.told.append((int(step), session.run("output/Read/ReadVariableOp:0").sum()))
        return super()._save(session, step)


class SummarizesAgain(tf.train.SummarySaverHook):
    def __init__(self, told, folder):
        super().__init__(save_steps=7, output_dir=folder, summary_op="no tensor")
        self.told = told

    def _get_summary_op(self):
        self.told.append(self._next_step)  # asked for twice
        return [tf.get_collection(tf.GraphKeys.SUMMARIES)[0]]


@pytest.mark.parametrize(
    ("make", "asked"),
    [
        (lambda told, folder: KeepsLosses(told), 6),
        (lambda told, folder: KeepsSteps(told), 5),
        (TellsOfSaves, 7),
        (SummarizesAgain, 12),
    ],
)
def test_subclasses_that_change_a_turn_get_equal_values(tmp_path, make, asked):
    def trained(name, **members):
        told, folder, turns = [], str(tmp_path / name), Calls()
        with tf.Graph().as_default():
            hook = make(told, folder)
        hook.__class__ = type("Hook", (type(hook),), members)

        estimator = make_estimator(tmp_path / name, log_step_count_steps=None)
        estimator.train(train_input_fn, hooks=[hook, turns], steps=36)
        return told, turns.count

    often, turns_of_often = trained("often", steps_until_control=lambda self, step: 1)
    seldom, turns_of_seldom = trained("seldom")
    assert seldom == often
    assert len(often) == asked
    assert (turns_of_often, turns_of_seldom < 20) == (36, True)
