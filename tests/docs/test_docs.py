"""The README and the guide: code runs, commands are run somewhere, links and names exist."""

import importlib.util
import operator
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import tensorflow as tf
from support import installations
from support.ports import free_ports

import tpu_estimator_compat
from tpu_estimator_compat import estimator, tpu

ROOT = pathlib.Path(__file__).parents[2]

README = ROOT / "README.md"
GUIDE = ROOT / "migration_guide"
GUIDE_PAGES = sorted(GUIDE.glob("*.md"))
PAGES = [README, *GUIDE_PAGES]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WALKED = {"bert.md", "compare.md", "migrate.md", "preflight.md", "run.md", "testing.md"}
"""Pages whose blocks depend on each other: tests/clients/test_guide.py runs them in their order."""

EFFECTS = {
    "checkpoints.md": """
np.testing.assert_array_equal(*kernels)
""",
    "canned.md": """
assert results["accuracy"] > 0.8, results
assert "dnn/hiddenlayer_0/kernel/t_0/Adagrad" in classifier.get_variable_names()
assert "training/Ftrl/linear/linear_model/x/weights/accumulator" in slots
assert estimator.get_variable_value("global_step") == 10
""",
    "host_call.md": """
import glob
events = [e for f in glob.glob(f"{MODEL_DIR}/*tfevents*") for e in tf.train.summary_iterator(f)]
steps = {e.step for e in events for v in e.summary.value if v.tag == "learning_rate"}
assert len(steps) == 20, steps
""",
    "code.md": """
assert results["accuracy"] > 0.9, results
assert results["global_step"] == 400, results
assert len(classes) == 300
assert [int(c) for c in classes[:3]] == [0, 1, 2], classes[:3]
assert len(history.history["loss"]) == 2
assert estimator.latest_checkpoint() == "clouds/model.ckpt-410"
""",
    "jax.md": """
assert results["global_step"] == 100, results
assert results["loss"] < 1e-3, results
import jax
assert isinstance(jax.devices()[0], jax.Device)
assert not jax.config.jax_enable_x64
""",
    "jax_several_devices.md": """
assert estimator.get_variable_value("dense/kernel").shape == (64, 512)
assert estimator.get_variable_value("global_step") == 20
import jax
assert len(jax.devices()) == 4
""",
    "distribution.md": """
assert results["global_step"] == 100, results
assert results["loss"] < 1e-3, results
assert strategy.steps_per_run == 20
assert strategy.cluster_resolver is None
""",
    "embedding.md": """
assert results["loss"] < 0.1, results
assert set(estimator.get_variable_names()) >= {"users", "users/Adagrad", "items", "items/Adagrad"}
""",
    "input_pipelines.md": """
assert calls == [(0, 1, 32)], calls
assert per_host_v2.get_variable_value("global_step") == 20
""",
    "leaving.md": r"""
import json
found = json.loads(pathlib.Path("mapping.json").read_text())
assert found == mapping
[shown] = re.findall(r"```json\n(.*?)```", pathlib.Path(PAGE).read_text(), re.DOTALL)
assert json.loads(shown) == found
fresh = make_model()
fresh.load_weights("new.weights.h5")
for a, b in zip(fresh.weights, new.weights, strict=True):
    np.testing.assert_array_equal(a.numpy(), b.numpy())
""",
    "serving.md": """
import os
assert set(colors) <= set(COLORS)
assert len(colors) == 4
assert scores.shape == (4, 3)
assert os.path.dirname(path) == b"exports"
assert sorted(os.listdir("exports")) == [os.path.basename(path).decode()]
first = tf.train.load_variable("more_colors/model.ckpt-0", "weights")
np.testing.assert_array_equal(first, model.get_variable_value("weights"))
""",
    "hooks.md": """
assert callback.results["loss"] < 0.1
assert trained.get_variable_value("global_step") < 300
""",
    "performance.md": """
assert estimator.get_variable_value("global_step") == 300
""",
    "schedules.md": """
from tpu_estimator_compat.estimator.early_stopping import read_eval_metrics
assert notes.told == [(100, False), (200, False), (300, True)]
assert exports[0].endswith("by_turns/export/notes")
assert stopping.get_variable_value("global_step") < 5000
assert metrics["accuracy"] > 0.9
assert list(read_eval_metrics("watched/eval")) == [0, 100, 200]
""",
}
"""What must hold after a page's code."""


def blocks(page: pathlib.Path, *languages: str) -> list[str]:
    return [code for language, code in FENCED.findall(page.read_text()) if language in languages]


def commands(page: pathlib.Path) -> list[str]:
    return [line for code in blocks(page, "sh", "bash") for line in code.splitlines()]


def marked(name: str) -> str:
    """The README's command below the marker with this name."""
    pattern = rf"^<!-- command: {name} -->\n```sh\n(.*)\n```$"
    [command] = re.findall(pattern, README.read_text(), re.MULTILINE)
    return command


def script(page: pathlib.Path) -> str:
    """A page's python blocks as one script, every line at its line number in the page."""
    text = page.read_text()
    kept = [""] * (text.count("\n") + 1)
    for match in FENCED.finditer(text):
        if match.group(1) == "python":
            first = text.count("\n", 0, match.start(2))
            lines = match.group(2).splitlines()
            kept[first : first + len(lines)] = lines
    return "\n".join(kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [p for p in GUIDE_PAGES if blocks(p, "python") and p.name not in WALKED],
    ids=lambda p: p.name,
)
def test_code_runs(page, tmp_path):
    program = tmp_path / f"page_{page.stem}.py"  # no other module's name
    given = f"\nimport re\nPAGE = {str(page)!r}\n"
    program.write_text(script(page) + given + EFFECTS[page.name])
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_the_cluster_of_the_guide(tmp_path):
    """The page's script, started by the page's commands, on ports that are free."""
    page = GUIDE / "distribution.md"
    text = page.read_text().partition("## Parameter servers")[0] + "```python\n"
    (tmp_path / "page.md").write_text(text + blocks(page, "python")[-1] + "```\n")
    (tmp_path / "train.py").write_text(script(tmp_path / "page.md") + EFFECTS[page.name])
    # `wait` gives the exit code of the chief, which runs in the background.
    started(blocks(page, "sh")[0] + "wait $!", tmp_path)
    assert (tmp_path / "sums" / "model.ckpt-100.index").exists()


@pytest.mark.slow
def test_the_parameter_servers_of_the_guide(tmp_path):
    page = GUIDE / "distribution.md"
    [program] = [code for code in blocks(page, "python") if "train_and_evaluate" in code]
    (tmp_path / "clicks.py").write_text(program)
    said = started(blocks(page, "sh")[1], tmp_path)
    folder = tmp_path / "clicks"
    assert tf.train.latest_checkpoint(folder) >= str(folder / "model.ckpt-600")
    assert {path.name[:6] for path in folder.iterdir()} >= {"checkp", "eval", "events", "graph."}
    accuracy = re.findall(r"Saving dict for global step 6\d\d: accuracy = ([\d.]+)", said)
    assert float(accuracy[-1]) > 0.9
    assert len(re.findall("TF_CONFIG names 2 parameter server", said)) == 4  # not the evaluator


def started(commands, folder):
    """What a page's commands print, on ports that are free."""
    ports = sorted(set(re.findall(r"localhost:(\d+)", commands)))
    for port, free in zip(ports, free_ports(len(ports)), strict=True):
        commands = commands.replace(port, str(free))
    commands = re.sub(r"\bpython\b", shlex.quote(sys.executable), commands)
    done = subprocess.run(
        ["bash", "-c", f"set -e\n{commands}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def starts_the_cluster(command: str) -> bool:
    return command in commands(GUIDE / "distribution.md")


def test_pages_that_are_walked():
    walker = (ROOT / "tests" / "clients" / "test_guide.py").read_text()
    assert set(re.findall(r'walk\("([\w.]+)"', walker)) == WALKED


def test_pages_with_code():
    with_code = {page.name for page in GUIDE_PAGES if blocks(page, "python")}
    assert with_code - WALKED == set(EFFECTS)


@pytest.mark.parametrize("name", ["digits", "tests"])
def test_readme_commands_are_one_line_and_set_themselves_up(name):
    command = marked(name)
    assert command in commands(README)
    make, install, run = command.split(" && ")
    assert make == "python3 -m venv .venv"
    assert install.startswith(".venv/bin/pip install ")
    assert run.startswith(".venv/bin/python ")


def test_ci_calls_the_readmes_test_command():
    done = subprocess.run(
        [ROOT / ".ci" / "run", "--test-command"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == marked("tests")
    assert re.search(r'^stage tests "\$test_command"$', ci_script(), re.MULTILINE)


def test_ci_runs_the_tests_that_the_readmes_command_leaves_out():
    """Each stage selects by the marker, so that together they run all."""
    assert marked("tests").endswith(' -m "not slow"')
    slow, full = [command for command in stages() if "pytest" in command]
    assert slow.endswith(" -m 'slow and not full'")
    assert full.endswith(" -m full")
    assert {slow, full} <= set(commands(GUIDE / "contributing.md"))


def test_tests_marked_full_are_slow(request):
    item = pytest.Function.from_parent(request.node.parent, name="test_x", callobj=lambda: None)
    item.add_marker("full")
    request.config.hook.pytest_itemcollected(item=item)
    assert item.get_closest_marker("slow")


def ci_script() -> str:
    return (ROOT / ".ci" / "run").read_text()


def stages() -> list[str]:
    return re.findall(r'^ *stage \w+ "(.*)"$', ci_script(), re.MULTILINE)


def is_run_by_ci(command: str) -> bool:
    # The test command sets things up, and after the last && runs tests.
    set_up, _, tests = marked("tests").rpartition(" && ")
    return command in [*stages(), marked("tests"), set_up, tests]


def runs_the_tested_example(command: str) -> bool:
    """Whether a command is the README's, on the script that tests/examples runs."""
    tested = (ROOT / "tests" / "examples" / "test_digits.py").read_text()
    path = pathlib.PurePath(shlex.split(command)[-1])
    parts = ", ".join(f'"{part}"' for part in path.parts)
    return command == marked("digits") and f"joinpath({parts})" in tested


def is_an_installation(command: str) -> bool:
    """Whether a command is a line of the page on installing, all of which tests/installing runs."""
    return command in installations.lines().values()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_is_run_somewhere(page):
    unknown = [
        command
        for command in commands(page)
        if page.name not in WALKED
        and command not in (".ci/run", ".ci/full")
        and not is_run_by_ci(command)
        and not runs_the_tested_example(command)
        and not starts_the_cluster(command)
        and not is_an_installation(command)
    ]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)]+)\)", page.read_text())
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not leads_somewhere(page, target)] == []


def leads_somewhere(page, target):
    path, _, section = target.partition("#")
    lines = (page.parent / path).read_text().splitlines() if section else []
    headings = (re.sub(r"[^\w -]", "", line.lstrip("# ")) for line in lines if line[:1] == "#")
    anchors = ["", *(heading.lower().replace(" ", "-") for heading in headings)]
    return (page.parent / path).exists() and section in anchors


def test_readme_says_why_and_the_guide_has_the_sources():
    assert "(migration_guide/index.md#why-leave-tensorflow-215)" in README.read_text()
    why = (GUIDE / "index.md").read_text().partition("## Why leave TensorFlow 2.15\n")[2]
    rows = [row for row in why.partition("\n## ")[0].splitlines() if row.startswith("| ")][1:]
    assert len(rows) == 5
    assert all("](https://" in row for row in rows)


@pytest.mark.parametrize("page", GUIDE_PAGES, ids=lambda p: p.name)
def test_a_page_says_where_to_go_next(page):
    """All but those about the package itself."""
    about_itself = page.name in ("changelog.md", "contributing.md", "design.md")
    assert about_itself != page.read_text().splitlines()[-1].startswith("Next: [")


def test_the_design_opens_with_the_theory():
    paragraph = (GUIDE / "design.md").read_text().split("\n\n")[1].split(". ", 1)[1]
    [theory] = re.findall(r"How it works: (.*?)\n\n", tpu_estimator_compat.__doc__, re.DOTALL)
    plain = re.sub(r"[`*]", "", paragraph)
    assert plain.split() == re.sub(r"[`*]", "", theory[0].upper() + theory[1:]).split()


def named_in_table() -> set[str]:
    rows = re.findall(
        r"^\| `(?:tf|tpu_estimator)\b.* \| (.*) \|$", (GUIDE / "code.md").read_text(), re.MULTILINE
    )
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def test_table_has_all_public_names():
    submodules = {f"estimator.{name}" for name in ("tpu", "export", "experimental", "inputs")}
    public = {f"tpu.{name}" for name in tpu.__all__}
    public |= {f"estimator.{name}" for name in estimator.__all__} - submodules
    for submodule in (estimator.export, estimator.experimental, estimator.inputs):
        prefix = submodule.__name__.partition(".")[2]
        public |= {f"{prefix}.{name}" for name in submodule.__all__}
    assert named_in_table() == public | {"layers", "tpu.ModeKeys", "tpu.WarmStartSettings"}


def test_names_in_table_exist():
    for name in named_in_table() - {"layers"}:
        namespace, _, attribute = name.partition(".")
        module = {"tpu": tpu_estimator_compat, "estimator": estimator}[namespace]
        assert operator.attrgetter(attribute)(module), name
    assert importlib.util.find_spec("tpu_estimator_compat.layers")
