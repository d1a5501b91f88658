"""Scripts in a dry run: how long, where to, and what of them is told."""

import math
import pathlib

import pytest

from .scripts import Scripts, names


@pytest.fixture
def scripts(forks, tmp_path) -> Scripts:
    return Scripts(forks, tmp_path)


@pytest.mark.parametrize("runtime", ["tensorflow", "session"])
def test_each_call_is_short_and_recorded(scripts, runtime):
    found = scripts.run(
        """
est = estimator("made", save_checkpoints_steps=1000)
class Counts(tf.train.SessionRunHook):
    runs = 0
    def after_run(self, context, values):
        Counts.runs += 1
est.train(train_fn, max_steps=100000, hooks=[Counts()])
print("runs", Counts.runs)
print("evaluated", est.evaluate(input_fn)["global_step"])
print("predicted", len(list(est.predict(input_fn))))
exported = est.export_saved_model("exports", serving)
print("exported", os.path.exists(os.path.join(exported.decode(), "saved_model.pb")))
""",
        options=("--runtime", runtime),
    )
    for line in ("runs 2", "evaluated 2", "predicted 8", "exported True"):
        assert line in found["output"].splitlines()
    calls = {call["call"]: call for call in found["calls"]}
    assert list(calls) == ["train", "evaluate", "predict", "export_saved_model"]
    train = calls["train"]
    assert pathlib.Path(train["file"]) == scripts.folder / "script.py"
    assert (train["line"], train["model_fn"], train["replicas"]) == (10, "model_fn", 1)
    assert (train["steps"], train["hooks"]) == (2, ["Counts"])
    assert train["written"] == ["made/model.ckpt-0", "made/model.ckpt-2"]
    # After one step from zeros each of the five weights of a class is 0.05 from zero.
    assert train["loss"] == pytest.approx(math.log1p(math.exp(-0.5)), rel=1e-5)
    assert (calls["evaluate"]["steps"], calls["predict"]["steps"]) == (1, 1)
    assert calls["export_saved_model"]["written"][0].startswith("exports/")
    assert found["status"] == 0
    assert scripts.files() == set()


def test_train_and_evaluate_evaluates_and_exports_as_at_its_end(scripts):
    found = scripts.run(
        """
est = estimator("made")
exporters = [tf.estimator.FinalExporter("final", serving)]
tf.estimator.train_and_evaluate(
    est,
    tf.estimator.TrainSpec(train_fn, max_steps=5000),
    tf.estimator.EvalSpec(input_fn, steps=None, exporters=exporters),
)
"""
    )
    assert names(found) == ["train", "evaluate", "export_saved_model"]
    assert {call["line"] for call in found["calls"]} == {7}
    assert found["calls"][2]["written"][0].startswith("made/export/final/")
    assert found["not_reached"] == []


TRAINS = """
estimator("made").train(train_fn, steps=40)
"""

FINDS = """
est = estimator("made")
print("begins", os.path.basename(est.latest_checkpoint()))
est.train(train_fn, max_steps=7)
again = estimator("./made/")
print("shared", again.model_dir == est.model_dir, again.get_variable_value("global_step"))
print("given", est.evaluate(input_fn, checkpoint_path="made/model.ckpt-42")["global_step"])
"""


def test_a_model_dir_begins_with_the_users_newest_checkpoint_and_stays(scripts):
    assert scripts.start(TRAINS, "run").returncode == 0
    before = {name: (scripts.folder / name).read_bytes() for name in scripts.files()}
    lines = scripts.run(FINDS)["output"].splitlines()
    for line in ("begins model.ckpt-40", "shared True 42", "given 42"):
        assert line in lines
    assert {name: (scripts.folder / name).read_bytes() for name in scripts.files()} == before


FLAGS = """
flags = tf.flags
flags.DEFINE_string("model_dir", "default_dir", "")
flags.DEFINE_string("output_dir", "default_out", "")
FLAGS = flags.FLAGS
def main(_):
    est = estimator(FLAGS.model_dir)
    est.train(train_fn, steps=5)
    print("found", tf.train.latest_checkpoint(FLAGS.model_dir) == est.latest_checkpoint())
    os.makedirs(FLAGS.output_dir + "_and_more", exist_ok=True)
    with open(os.path.join(FLAGS.output_dir, "note.txt"), "w") as file:
        file.write("x")
tf.app.run()
"""


def test_a_fork_that_ends_leaves_the_folder_and_the_report(scripts):
    found = scripts.run(
        """
import sys
est = estimator("made")
est.train(train_fn, steps=1)
sys.stdout.flush()
if (pid := os.fork()) == 0:
    sys.exit(5)
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("there", os.path.exists(os.path.join(est.model_dir, "checkpoint")))
"""
    )
    assert found["output"].count("status 5") == 1
    assert "there True" in found["output"]
    assert found["output"].count("Dry run: ") <= 1
    assert found["errors"].count("Dry run: ") <= 1


def test_empty_data_makes_no_step_and_refused_arguments_are_refused(scripts):
    found = scripts.run(
        """
est = estimator("made")
est.train(train_fn, steps=1)
est.evaluate(lambda: input_fn().take(0))
print("predicted", len(list(est.predict(lambda: input_fn().take(0)))))
for refused in (
    lambda: est.train(train_fn, steps=3, max_steps=4),
    lambda: est.evaluate(input_fn, steps=-3),
    lambda: tf.estimator.Estimator(model_fn, "other", tf.estimator.RunConfig("made")),
    lambda: est.train(),
):
    try:
        refused()
    except (TypeError, ValueError) as error:
        print(error)
"""
    )
    assert [call["steps"] for call in found["calls"]] == [1, 0, 0, 0, 0]
    _, one, two, three, four, *_ = found["output"].splitlines()
    assert one == "Can not provide both steps and max_steps."
    assert two == "Must specify steps > 0, given: -3"
    assert three.startswith("`model_dir` are set both in constructor and `RunConfig`")
    assert "missing 1 required positional argument: 'input_fn'" in four


def test_hooks_and_exported_keras_models_write_to_the_dry_runs_folders(scripts):
    found = scripts.run(
        """
est = estimator("made")
saver = tf.train.CheckpointSaverHook("made", save_steps=1, checkpoint_basename="by_hook")
est.train(train_fn, hooks=[saver, tf.train.StepCounterHook(1, output_dir="made")])
est.keras_model(train_fn).export("exported")
""",
        options=("--behavior=v1",),
    )
    assert found["status"] == 0, found["errors"]
    assert "made/by_hook-2" in found["calls"][0]["written"]
    assert scripts.files() == set()


@pytest.mark.parametrize("words", [(), ("--model_dir=given", "--output_dir", "out")])
def test_folders_of_flags_are_temporary_given_or_not(scripts, words):
    found = scripts.run(FLAGS, *words)
    assert "found True" in found["output"]
    folder = "given" if words else "default_dir"
    assert f"{folder}/model.ckpt-2" in found["calls"][0]["written"]
    assert scripts.files() == set()
    assert not any(scripts.folder.glob("*_and_more"))


def test_folders_of_argparse_and_of_other_flags_are_temporary(scripts):
    text = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--job-dir", default="job")
parser.add_argument("--results", default="results")
parsed = parser.parse_args()
estimator(parsed.job_dir).train(train_fn, steps=5)
open(os.path.join(parsed.results, "note.txt"), "w").close()
"""
    assert scripts.run(text, options=("--own-folder=results",))["status"] == 0
    assert scripts.files() == set()


def test_a_loop_until_a_far_step_ends(scripts):
    found = scripts.run(
        """
est = estimator("made")
for _ in range(20):
    est.train(train_fn, steps=1000)
    last = est.evaluate(input_fn)
print("last", last["global_step"])
while True:
    est.evaluate(input_fn, name="more")
"""
    )
    assert found["status"] == 0
    assert "last 6" in found["output"]
    assert names(found) == ["train", "evaluate"] * 3 + ["evaluate"] * 3
    assert [call["repeated"] for call in found["calls"][4:6]] == [17, 17]
    assert "A loop around evaluate in line 11 did not end by itself" in found["stopped"]


def test_waits_for_more_checkpoints_end(scripts):
    found = scripts.run(
        """
import time
est = estimator("made")
est.train(train_fn, steps=10)
for path in tf.train.checkpoints_iterator(est.model_dir, timeout=3600):
    print("evaluated", est.evaluate(input_fn, checkpoint_path=path)["global_step"])
print("and then")
while True:
    time.sleep(3600)
"""
    )
    assert "evaluated 2\nand then" in found["output"]
    assert "waited" in found["stopped"]
    assert found["status"] == 0


def test_a_failure_is_told_with_what_was_not_reached(scripts):
    found = scripts.run(
        """
est = estimator("made")
est.train(train_fn, steps=5)
est.evaluate(lambda: input_fn().no_such_method())
list(est.predict(input_fn))
"""
    )
    assert found["status"] == 1
    assert names(found) == ["train", "evaluate"]
    assert found["calls"][1]["error"].startswith("AttributeError: ")
    assert [(each["call"], each["line"]) for each in found["not_reached"]] == [("predict", 8)]
    assert "in <module>" in found["errors"]
    assert "tools/dry_run" not in found["errors"]
    assert "Not reached: predict (script.py:8)." in " ".join(found["output"].split())


COUNTS = """
est = estimator("made")
est.train(train_fn, steps=5)
assert len(list(est.predict(input_fn))) == 64, "count"
"""


@pytest.mark.parametrize(("options", "status"), [((), 1), (("--whole-predictions",), 0)])
def test_a_script_that_counts_predictions_is_told_of_the_option(scripts, options, status):
    found = scripts.run(COUNTS, options=options)
    assert found["status"] == status
    assert ("use --whole-predictions" in " ".join(found["output"].split())) == bool(status)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("pass", 1),
        ("estimator('made').train(train_fn, steps=1)", 0),
        ("estimator('made').train(train_fn, steps=1); raise SystemExit(3)", 3),
        ("estimator('made').train(train_fn, steps=1); raise SystemExit('no')", 1),
        ("estimator('made').train(train_fn, steps=1); raise KeyboardInterrupt", 130),
    ],
)
def test_exit_statuses(scripts, end, status):
    found = scripts.run(f"{end}\n")
    assert found["status"] == status
    assert ("no call of an estimator" in found["output"]) == (end == "pass")
    steps = [1] if "train" in end else []
    assert [call["steps"] for call in found["calls"]] == steps


def test_keras_models_are_short_too(scripts):
    found = scripts.run(
        """
est = estimator("made")
model = est.keras_model(train_fn)
history = model.fit(train_fn(), epochs=9, steps_per_epoch=50, validation_data=input_fn(), verbose=0)
print("epochs", len(history.history["val_loss"]))
model.evaluate(input_fn(), verbose=0)
print("rows", len(model.predict(input_fn(), verbose=0)["p"]))
""",
        options=("--behavior=v2",),
    )
    assert names(found) == [f"keras_model().{name}" for name in ("fit", "evaluate", "predict")]
    assert "epochs 1" in found["output"]
    assert "rows 8" in found["output"]
    assert found["calls"][0]["written"] == ["made/model.ckpt-2"]
    assert all(call["loss"] for call in found["calls"][:2])
    assert scripts.files() == set()


def test_functions_at_exit_and_threads_find_the_folder(scripts):
    found = scripts.run(
        """
import atexit, threading
est = estimator(None)
atexit.register(lambda: print("at exit", est.evaluate(input_fn)["global_step"]))
thread = threading.Thread(target=lambda: est.train(train_fn, steps=9))
thread.start()
print("folder", est.model_dir)
"""
    )
    assert names(found) == ["train", "evaluate"]
    [line] = [line for line in found["output"].splitlines() if line.startswith("folder")]
    assert not pathlib.Path(line.split()[1]).exists()
    assert "at exit 2" in found["output"]
