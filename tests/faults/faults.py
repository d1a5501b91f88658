"""Seeded faults: changes of the package that a user would notice and that a reviewer could miss.

A suite of tests is as good as what it catches. `run.py` makes these changes, one at a time, in
copies of a tree, and says which test of that tree fails. So a suite that was cut anew can be
compared with the one before.
"""

from __future__ import annotations

import dataclasses

MISSION = (
    "estimator",
    "inputs",
    "graph",
    "capture",
    "state",
    "step",
    "modes",
    "loop",
    "session",
    "hooks",
    "checkpoint",
    "export",
)
"""The rooms of the package that have faults."""

SIGN = "a sign"
OFF_BY_ONE = "an off-by-one"
ORDER = "a dropped dependency or a wrong order"
NAME = "a wrong name or scope"
LOST_CALL = "a lost call"
LOST_FLUSH = "a lost flush or wait"
SWAPPED = "swapped arguments"
DEFAULT = "a wrong default"
REDUCTION = "a wrong reduction over replicas"
STALE = "a stale cache"
CAST = "a lost cast"
COUNT = "a step that is counted wrongly"
KINDS = (
    SIGN,
    OFF_BY_ONE,
    ORDER,
    NAME,
    LOST_CALL,
    LOST_FLUSH,
    SWAPPED,
    DEFAULT,
    REDUCTION,
    STALE,
    CAST,
    COUNT,
)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A change of one file of the package.

    Attributes:
      name: what is wrong then.
      kind: one of `KINDS`.
      file: below the package.
      old: a text that is in the file exactly once.
      new: what takes its place.
      shows: what a user sees of it.
      beside: other rooms whose tests are likely to notice: they run next.
    """

    name: str
    kind: str
    file: str
    old: str
    new: str
    shows: str
    beside: tuple[str, ...] = ()

    @property
    def room(self) -> str:
        """The room of the file: its tests run before all others."""
        return self.file.partition("/")[0]


FAULTS = (
    # estimator
    Fault(
        name="best_exporter_prefers_the_larger_loss",
        kind=SIGN,
        file="estimator/exporters.py",
        old='return best_eval_result["loss"] > current_eval_result["loss"]',
        new='return best_eval_result["loss"] < current_eval_result["loss"]',
        shows="BestExporter exports what is worse",
    ),
    Fault(
        name="latest_exporter_keeps_one_more",
        kind=OFF_BY_ONE,
        file="estimator/exporters.py",
        old="heapq.nlargest(keep, exports)",
        new="heapq.nlargest(keep + 1, exports)",
        shows="exports_to_keep=2 leaves three exports",
    ),
    Fault(
        name="evaluator_takes_the_same_checkpoint_again",
        kind=STALE,
        file="estimator/schedule.py",
        old="        self._last_path = path\n",
        new="",
        shows="train_and_evaluate evaluates, and exports, one checkpoint several times",
    ),
    Fault(
        name="first_values_are_evaluated",
        kind=DEFAULT,
        file="estimator/schedule.py",
        old="        self._is_first_save = True\n",
        new="        self._is_first_save = False\n",
        shows="train_and_evaluate evaluates the checkpoint before the first step",
    ),
    Fault(
        name="in_memory_evaluator_counts_runs_for_steps",
        kind=COUNT,
        file="estimator/in_memory_evaluator.py",
        old="self._steps += run_context.session.steps_last_run",
        new="self._steps += 1",
        shows="evaluations within a training come too late where a run makes many steps",
        beside=("hooks", "modes", "step"),
    ),
    Fault(
        name="early_stopping_waits_an_evaluation_longer",
        kind=OFF_BY_ONE,
        file="estimator/early_stopping.py",
        old="if step - best_step >= max_steps:",
        new="if step - best_step > max_steps:",
        shows="stop_if_no_decrease_hook stops an evaluation late",
        beside=("hooks",),
    ),
    Fault(
        name="exports_keep_default_attributes",
        kind=DEFAULT,
        file="estimator/exporting.py",
        old="strip_default_attrs: bool = True",
        new="strip_default_attrs: bool = False",
        shows="an export that servers of an older TensorFlow do not load",
        beside=("export",),
    ),
    Fault(
        name="model_fn_off_tpu_is_told_of_a_tpu",
        kind=DEFAULT,
        file="estimator/tpu_rules.py",
        old="added = {BATCH_SIZE_KEY: batch_size, USE_TPU_KEY: False}",
        new="added = {BATCH_SIZE_KEY: batch_size, USE_TPU_KEY: True}",
        shows="params['use_tpu'] is True on a CPU, and in exports for CPU",
    ),
    # inputs
    Fault(
        name="first_row_of_padding_counts",
        kind=OFF_BY_ONE,
        file="inputs/padding.py",
        old="tf.range(batch_size) >= rows",
        new="tf.range(batch_size) > rows",
        shows="predict gives an example too many, made of zeros",
    ),
    Fault(
        name="padding_is_marked_with_bools",
        kind=CAST,
        file="inputs/padding.py",
        old="is_padding = tf.cast(tf.range(batch_size) >= rows, tf.int32)",
        new="is_padding = tf.range(batch_size) >= rows",
        shows="features['is_padding'] is of another type than on a TPU",
    ),
    Fault(
        name="every_host_gets_the_first_hosts_slices",
        kind=NAME,
        file="inputs/splitting.py",
        old="return cut.skip(wanted.start).take(len(wanted))",
        new="return cut.take(len(wanted))",
        shows="replicas of the second host evaluate what those of the first do",
    ),
    Fault(
        name="a_hosts_share_is_by_replicas",
        kind=SWAPPED,
        file="inputs/modes/per_host_v1.py",
        old="hosts = min(self.topology.num_hosts, self.topology.num_replicas)",
        new="hosts = max(self.topology.num_hosts, self.topology.num_replicas)",
        shows="params['batch_size'] of input_fn is too small with PER_HOST_V1",
    ),
    Fault(
        name="python_is_read_ahead_in_predictions",
        kind=ORDER,
        file="inputs/deployment.py",
        old="not (computed or (python and input_mode.mode == ModeKeys.PREDICT))",
        new="not computed",
        shows="a generator is asked for more before predict has given what it gave",
        beside=("modes",),
    ),
    # graph, capture, state, step
    Fault(
        name="loss_is_the_sum_over_replicas",
        kind=REDUCTION,
        file="step/program.py",
        old="return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)",
        new="return self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)",
        shows="the loss of two replicas is twice as large",
        beside=("modes", "estimator"),
    ),
    Fault(
        name="optimizers_add_up_instead_of_averaging",
        kind=REDUCTION,
        file="capture/exchanging_optimizers.py",
        old="return compute(self, loss / replicas, *args, **kwargs)",
        new="return compute(self, loss, *args, **kwargs)",
        shows="under MirroredStrategy the learning rate is as many times too large",
        beside=("modes", "estimator", "canned"),
    ),
    Fault(
        name="moving_averages_of_replicas_are_divided_by_the_others",
        kind=REDUCTION,
        file="state/variables.py",
        old="/ (1 + len(others))",
        new="/ len(others)",
        shows="moving averages in a checkpoint of two replicas are twice as large",
        beside=("modes", "estimator"),
    ),
    Fault(
        name="reads_after_a_write_are_taken_for_repeated",
        kind=STALE,
        file="graph/simplify.py",
        old=(
            "        for variable in handles:  # the op may write to it\n"
            "            first.pop(variable, None)\n"
        ),
        new="",
        shows="what reads a variable after its update gets the value from before",
    ),
    Fault(
        name="updates_do_not_wait_for_the_element",
        kind=ORDER,
        file="graph/importing.py",
        old="        op._add_control_inputs([*inside, *outside])\n",
        new="        op._add_control_inputs(inside)\n",
        shows="a step that finds the end of the data has counted itself",
        beside=("step", "inputs", "modes"),
    ),
    Fault(
        name="random_streams_of_replicas_are_one",
        kind=STALE,
        file="step/random_streams.py",
        old="        key = name, seed, seed2\n        if key",
        new="        key = name, seed, 0\n        if key",
        shows="replicas draw from one stream, in whatever order",
    ),
    Fault(
        name="all_to_all_joins_along_the_split_dimension",
        kind=SWAPPED,
        file="step/collectives.py",
        old='return tf.concat(pieces, op.get_attr("concat_dimension"))',
        new="return tf.concat(pieces, split)",
        shows="tpu.ops.all_to_all gives another shape",
    ),
    Fault(
        name="writes_do_not_wait_for_earlier_reads",
        kind=ORDER,
        file="step/stages.py",
        old="(written if reads else touched).get(v, 0)",
        new="written.get(v, 0)",
        shows="a variable is written before a read that model_fn has before the write",
    ),
    Fault(
        name="fetches_are_known_without_their_keys",
        kind=STALE,
        file="session/fetches.py",
        old="shape: list[Any] = [kind, *fetches] if named else [kind]",
        new="shape: list[Any] = [kind]",
        shows="session.run({'b': x}) gives {'a': ...} after session.run({'a': x})",
    ),
    Fault(
        name="keras_layers_go_on_counting",
        kind=NAME,
        file="capture/capture.py",
        old=(
            "with graph_building.capture_semantics(), graph_building.fresh_keras_names(), "
            "graph.as_default():"
        ),
        new="with graph_building.capture_semantics(), graph.as_default():",
        shows="variables of the second graph have other names than those in the checkpoint",
        beside=("modes", "estimator", "keras_model", "legacy"),
    ),
    Fault(
        name="assignments_are_not_counted",
        kind=STALE,
        file="state/variables.py",
        old="        self.assignments += 1\n",
        new="",
        shows="a global step that a callback has set is not seen by hooks of the same step",
        beside=("hooks", "modes", "session"),
    ),
    # modes
    Fault(
        name="an_evaluation_counts_runs_for_steps",
        kind=COUNT,
        file="modes/evaluation.py",
        old="before, self._done = self._done, self._done + run_context.session.steps_last_run",
        new="before, self._done = self._done, self._done + 1",
        shows="evaluate(steps=3) makes more steps than three",
    ),
    Fault(
        name="updates_of_keras_layers_are_left_out",
        kind=ORDER,
        file="modes/plans.py",
        old="targets = [train_op, *implicit, *calls]",
        new="targets = [train_op, *calls]",
        shows="moving averages of batch normalisation stay at their first values",
    ),
    Fault(
        name="the_loss_is_logged_too_often",
        kind=OFF_BY_ONE,
        file="modes/training.py",
        old='in_calls = {"every_n_iter": math.ceil(every / loop.value)}',
        new='in_calls = {"every_n_iter": max(1, every // loop.value)}',
        shows="with iterations_per_loop=3, log_step_count_steps=4 logs every 3 steps, not 6",
        beside=("estimator", "hooks"),
    ),
    Fault(
        name="a_prediction_is_not_closed",
        kind=LOST_CALL,
        file="modes/prediction.py",
        old="    with run.in_graph():\n        monitored.close()\n",
        new="",
        shows="hooks of predict are not told of the end, and events are not written",
        beside=("hooks",),
    ),
    Fault(
        name="the_last_host_calls_are_not_waited_for",
        kind=LOST_FLUSH,
        file="modes/training.py",
        old=(
            "            if creator.session is not None:\n"
            "                creator.session.finish_host_calls()\n"
        ),
        new="",
        shows="train ends well although the host call of its last step failed",
        beside=("step",),
    ),
    # loop
    Fault(
        name="steps_count_before_their_element_is_there",
        kind=ORDER,
        file="loop/device_loop.py",
        old=(
            "with tf.control_dependencies([loss, *tf.nest.flatten(data, expand_composites=True)]):"
        ),
        new="with tf.control_dependencies([loss]):",
        shows="one step too many is told where the data ends and the loss ignores it",
        beside=("modes",),
    ),
    Fault(
        name="steps_of_the_call_before_count_again",
        kind=COUNT,
        file="loop/device_loop.py",
        old="        self._done.assign(0)\n",
        new="",
        shows="hooks are told of steps that were not made where the data ends between two calls",
        beside=("modes", "hooks", "keras_model"),
    ),
    Fault(
        name="the_loss_of_no_steps_is_taken",
        kind=DEFAULT,
        file="loop/result.py",
        old="loss=later.loss if later.steps else self.loss,",
        new="loss=later.loss,",
        shows="the final loss is NaN where the data ends between two calls",
        beside=("modes", "hooks"),
    ),
    Fault(
        name="the_counter_is_taken_for_the_one_before",
        kind=SWAPPED,
        file="loop/single_step.py",
        old=(
            "return [loss, *([] if self._counter is None else [self._counter.read_value()]), "
            "*before]"
        ),
        new=(
            "return [loss, *before, "
            "*([] if self._counter is None else [self._counter.read_value()])]"
        ),
        shows="hooks around every step read the global step after it",
        beside=("hooks", "modes"),
    ),
    # session
    Fault(
        name="a_loop_does_not_begin",
        kind=LOST_CALL,
        file="session/step_session.py",
        old="        if asked.makes_steps:\n            self.runner.begin_loop()\n",
        new="",
        shows="experimental_host_call_every_n_steps counts over loops",
        beside=("step",),
    ),
    Fault(
        name="reads_do_not_wait_for_host_calls",
        kind=ORDER,
        file="session/step_session.py",
        old="            self.runner.finish_host_calls(using=variable.name[:-2])\n",
        new="            pass\n",
        shows="a hook reads a variable of a host call before that has written it",
        beside=("step",),
    ),
    Fault(
        name="only_the_last_step_of_a_run_counts",
        kind=COUNT,
        file="session/step_session.py",
        old="            self.steps_last_run = ahead.steps + result.steps\n",
        new="            self.steps_last_run = result.steps\n",
        shows="hooks that count their calls lag behind the steps",
        beside=("hooks", "modes", "loop"),
    ),
    Fault(
        name="what_is_fed_is_not_in_the_key",
        kind=STALE,
        file="session/replica_runner.py",
        old="names = tuple(tuple(x.name for x in each) for each in (fetches, targets, fed))",
        new="names = tuple(tuple(x.name for x in each) for each in (fetches, targets))",
        shows="a hook that feeds another tensor than before feeds the first one",
        beside=("hooks", "modes", "step"),
    ),
    Fault(
        name="summaries_are_not_flushed",
        kind=LOST_FLUSH,
        file="session/replica_runner.py",
        old="        self.store.flush_summaries()\n",
        new="",
        shows="events of a script's own summary writers are missing at the end",
        beside=("modes", "step", "hooks"),
    ),
    Fault(
        name="checkpoints_before_are_forgotten",
        kind=LOST_CALL,
        file="session/session_creator.py",
        old="            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)\n",
        new="",
        shows="keep_checkpoint_max holds for one call of train only",
        beside=("checkpoint",),
    ),
    # hooks
    Fault(
        name="skipped_steps_count_one_too_many",
        kind=COUNT,
        file="hooks/pacing.py",
        old="traits.skipped(hook, steps - 1)",
        new="traits.skipped(hook, steps)",
        shows="LoggingTensorHook logs at other steps",
    ),
    Fault(
        name="summaries_are_asked_for_a_step_late",
        kind=OFF_BY_ONE,
        file="hooks/traits.py",
        old="return _timer_demand(hook._timer, global_step, lead=1)",
        new="return _timer_demand(hook._timer, global_step)",
        shows="summaries are of a step after the one that they were due in",
    ),
    Fault(
        name="loops_overshoot_the_last_step",
        kind=DEFAULT,
        file="hooks/traits.py",
        old="hooks_lib.StopAtStepHook: _own(_last_step, bounds_training=True),",
        new="hooks_lib.StopAtStepHook: _own(_last_step),",
        shows="train(max_steps=5) makes six steps with iterations_per_loop=3",
    ),
    Fault(
        name="the_last_write_is_not_waited_for",
        kind=LOST_FLUSH,
        file="hooks/saver_hook.py",
        old='        """Saves the last step."""\n        self.wait()\n',
        new='        """Saves the last step."""\n',
        shows="train returns while its last checkpoint is still being written",
        beside=("checkpoint",),
    ),
    Fault(
        name="results_are_not_flushed",
        kind=LOST_FLUSH,
        file="hooks/evaluation_events.py",
        old="    writer.flush()\n",
        new="",
        shows="events of an evaluation appear minutes after it",
    ),
    Fault(
        name="callbacks_are_not_told_of_the_end_of_the_epoch",
        kind=LOST_CALL,
        file="hooks/keras_callbacks.py",
        old=(
            '        if self._mode == "train":\n            self._call("on_epoch_end", 0, logs)\n'
        ),
        new="",
        shows="a Keras callback among the hooks gets no on_epoch_end",
    ),
    Fault(
        name="the_flag_of_early_stopping_has_another_name",
        kind=NAME,
        file="hooks/early_stopping.py",
        old='            "STOP",\n',
        new='            "stop",\n',
        shows="checkpoints of the original with early stopping lack a variable",
    ),
    # checkpoint
    Fault(
        name="the_oldest_checkpoint_is_the_next_choice",
        kind=ORDER,
        file="checkpoint/state.py",
        old="[newest, *reversed(before)]",
        new="[newest, *before]",
        shows="after a damaged checkpoint training goes on from the oldest one",
    ),
    Fault(
        name="the_error_is_of_the_oldest_checkpoint",
        kind=NAME,
        file="checkpoint/state.py",
        old="            error = error or failed\n",
        new="            error = failed\n",
        shows="where no checkpoint can be read, the error names the oldest, not the newest",
    ),
    Fault(
        name="ops_with_a_state_of_their_own_are_refused",
        kind=SWAPPED,
        file="checkpoint/input_state.py",
        old="external_state_policy=_IGNORE_STATEFUL",
        new="external_state_policy=_FAIL_IF_STATEFUL",
        shows="save_input_state=True fails for an input with a random op",
    ),
    Fault(
        name="shapes_of_model_and_checkpoint_change_places",
        kind=SWAPPED,
        file="checkpoint/diagnosis.py",
        old=(
            'f"Variable {name!r} has shape {shape} in the model and "\n'
            '                    f"{tuple(shapes[name])} in the checkpoint.",\n'
        ),
        new=(
            'f"Variable {name!r} has shape {tuple(shapes[name])} in the model and "\n'
            '                    f"{shape} in the checkpoint.",\n'
        ),
        shows="the error of a checkpoint that does not fit blames the wrong side",
    ),
    # export
    Fault(
        name="what_servers_feed_has_another_name",
        kind=NAME,
        file="export/receivers.py",
        old='    "receiver_tensor": SINGLE_RECEIVER_DEFAULT_NAME,\n',
        new='    "receiver_tensor": SINGLE_FEATURE_DEFAULT_NAME,\n',
        shows="clients of a server find no input called `input`",
    ),
    Fault(
        name="tables_of_an_export_stay_empty",
        kind=DEFAULT,
        file="export/saved_model.py",
        old='"main_op": _local_init_op(spec),',
        new='"main_op": spec.scaffold.local_init_op,',
        shows="a server has no values in its lookup tables",
    ),
    Fault(
        name="an_interrupted_export_leaves_its_files",
        kind=LOST_CALL,
        file="export/directories.py",
        old=(
            "        with contextlib.suppress(tf.errors.OpError):\n"
            "            tf.io.gfile.rmtree(directory.temporary)\n"
        ),
        new="",
        shows="failed exports fill the disk",
    ),
    Fault(
        name="scores_and_classes_change_places",
        kind=SWAPPED,
        file="export/tpu_graph.py",
        old="return [output.scores, output.classes]",
        new="return [output.classes, output.scores]",
        shows="a classification that is served on a TPU answers classes as scores",
    ),
)
