"""Wrong calls of the commands: a line that says what is wrong, no traceback, no waiting."""

import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", r"\n\npython -m \S+: error: the following arguments are required: COMMAND"),
        ("nosuch", r"invalid choice: 'nosuch'"),
        ("scann .", r"invalid choice: 'scann' .*\. Did you mean scan\?"),
        ("run", "the following arguments are required: SCRIPT"),
        ("run nosuch.py", r"run: error: there is no script 'nosuch\.py' in "),
        ("run .", r"run: error: '\.' is a directory; name the script in it"),
        ("run -m nosuch.module", r"there is no module 'nosuch\.module' with Python source"),
        ("run -m sys", r"there is no module 'sys' with Python source"),
        ("run -m ./script.py", r"there is no module '\./script\.py' with Python source"),
        ("run --behavior v3 a.py", r"argument --behavior: invalid choice: 'v3'"),
        ("run --logical-cpus two a.py", "--logical-cpus: expected a number of devices, got 'two'"),
        ("run --logical-cpus -2 a.py", "--logical-cpus: expected a number of devices, got '-2'"),
        ("run --legacy-package", "argument --legacy-package: expected one argument"),
        (
            "run --nosuch a.py",
            "unrecognized arguments: --nosuch. Put options of the script after SCRIPT",
        ),
        ("run --behaviour v1 a.py", "arguments: --behaviour. Did you mean --behavior"),
        ("run --behavior v11 a.py", r"invalid choice: 'v11' .*\. Did you mean v1\?"),
        ("run -m os.nosuch", r"there is no module 'os\.nosuch' with Python source"),
        ("run -m json.nosuch", r"there is no module 'json\.nosuch' with Python source"),
        ("run -m __main__", r"there is no module '__main__' with Python source"),
        ("scan", "the following arguments are required: PATH"),
        ("scan nosuch.py", r"scan: There is no file or folder 'nosuch\.py'"),
        ("scan .", r"scan: There are no Python files and no notebooks in '\.'"),
        (
            "scan places --exclude *.py --exclude *.ipynb",
            "no notebooks that --exclude leaves in 'places'",
        ),
        ("scan there.csv", r"there\.csv' is neither a Python file \(\*\.py\) nor a notebook"),
        ("migrate", "the following arguments are required: PATH"),
        ("migrate nosuch.py", r"migrate: There is no file or folder 'nosuch\.py'"),
        ("migrate .", r"migrate: There are no Python files and no notebooks in '\.'"),
        ("migrate there.csv", r"there\.csv' is neither a Python file \(\*\.py\) nor a notebook"),
        ("preflight", "the following arguments are required: SCRIPT"),
        ("preflight nosuch.py", r"preflight: error: there is no script 'nosuch\.py' in "),
        ("preflight --mode both a.py", r"argument --mode: invalid choice: 'both'"),
        ("preflight --depth deep a.py", r"argument --depth: invalid choice: 'deep'"),
        ("preflight --time-limit long a.py", "--time-limit: invalid float value: 'long'"),
        ("preflight --topology v9:9x9 there.py", "Unknown TPU generation in topology 'v9:9x9'"),
        ("preflight --html nosuch/a.html there.py", "No such file or directory: 'nosuch/a.html'"),
        ("preflight --topology v5e there.py", "does not say how the chips are arranged"),
        ("preflight --topology v5litepod-4 there.py", "v5e:2x2"),
        ("preflight --topology h100:9 there.py", "'h100:9' has no valid number of GPUs"),
        ("preflight --topology rtx:1 there.py", "GPUs are named such as h100:8: t4, v100"),
        ("preflight --topology t4:1 --memory-share 75 there.py", "at most 1, got 75.0"),
        ("to-keras there.py", "the following arguments are required: --out"),
        ("to-keras --out a.py nosuch.py", r"to-keras: error: there is no script 'nosuch\.py' in "),
        ("to-keras --out a.py places", "There is no SavedModel in 'places'. Name the folder that"),
        ("to-keras there.py --out", "argument --out: expected one argument"),
        ("to-keras there.py --its=3 --out a.py", "the following arguments are required: --out"),
        ("to-keras there.py --out a --its=3", r"must be a Python module, NAME\.py\. Got 'a'"),
        ("to-keras --out a there.py", r"must be a Python module, NAME\.py\. Got 'a'"),
        ("to-keras --out a-b.py there.py", r"must be a Python module, NAME\.py\. Got 'a-b\.py'"),
        ("to-keras --out nosuch/a.py there.py", "There is no folder 'nosuch' for 'nosuch/a.py'"),
        ("to-keras --out places/there.py there.py", "places/there.py already there. Name another"),
        ("to-keras --out a.py --tolerance -1 there.py", "--tolerance must be 0 or more, got -1.0"),
        ("to-keras --out a.py --signature b there.py", r"are of a SavedModel, and \S+ is a script"),
        (
            "compare --against gpu there.py",
            "Expected tf, jax, session, jit or replicas=N, got 'gpu'",
        ),
        ("compare --keep places there.py", "--keep places: this folder or file already exists"),
        ("compare there.ipynb", "there.ipynb is a notebook, which the original's environment"),
        ("compare --dirs places nosuch", "places has neither event files nor a checkpoint"),
        ("compare --dirs nosuch places", r"nosuch does not exist\. Give a model_dir"),
        ("compare --dirs --rtol -1 a b", "--rtol must be 0 or more, got -1.0"),
        ("map-weights", "the following arguments are required: checkpoint, model"),
        ("map-weights . keras_model", r"must be module:function or file\.py:function"),
        ("map-weights . keras_model:", r"must be module:function or file\.py:function"),
        ("map-weights . nosuch.py:f", r"map-weights: there is no file 'nosuch\.py' in "),
        ("map-weights . nosuch:f", "map-weights: there is no module 'nosuch' to import"),
        ("map-weights . os:nosuch", "map-weights: os has no function 'nosuch'"),
        ("map-weights . os:sep", "map-weights: os has no function 'sep'"),
        ("map-weights . os:getcwd", r"os:getcwd must return a keras\.Model\. Got '"),
        ("map-weights . os:getcwd --mapping nosuch", "there is no file 'nosuch' in "),
        ("map-weights . os:getcwd --out a.weights.h5", "--out and --saved-model need --mapping"),
        ("map-weights . os:getcwd --saved-model a", "--saved-model and --inputs go together"),
        ("map-weights . twin.py:f", r"map-weights: No checkpoint and no SavedModel in \."),
        ("map-weights nosuch twin.py:f", "map-weights: No checkpoint nosuch. Give its prefix, "),
        ("map-weights nosuch twin.py:f --tolerance a", "--tolerance: invalid float value: 'a'"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(words, said, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    places = tmp_path / "places"
    places.mkdir()
    (tmp_path / "checkpoint").touch()
    for text, name in (
        ("", "there.py"),
        ("", "there.ipynb"),
        ("", "there.csv"),
        (_TWIN, "twin.py"),
    ):
        (places / name).write_text(text)
    arguments = [f"places/{w}" if w.startswith(("there", "twin")) else w for w in words.split()]
    if words in ("scan .", "migrate .", "map-weights . twin.py:f"):
        (tmp_path / "empty").mkdir()
        arguments[1] = "empty"
        said = said.replace(r"\.", "empty")
    try:
        status = main(arguments)
    except SystemExit as left:
        status = left.code
    told = capfd.readouterr().err + (status if isinstance(status, str) else "")
    assert re.search(said, told), told
    assert "Traceback" not in told
    assert status == 2 or isinstance(status, str)  # a text exits with 1


_TWIN = "import types\n\n\ndef f():\n    return types.SimpleNamespace(weights=[])\n"


@pytest.mark.parametrize("text", ["{", "[1]"], ids=["no JSON", "no object"])
def test_a_mapping_of_another_kind(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mapping.json").write_text(text)
    (tmp_path / "twin.py").write_text(_TWIN)
    checkpoint = _checkpoint(tmp_path)
    said = "is not JSON" if text == "{" else "must hold a JSON object"
    with pytest.raises(SystemExit, match=rf"map-weights: --mapping mapping\.json {said}"):
        main(["map-weights", checkpoint, "twin.py:f", "--mapping", "mapping.json"])


def _checkpoint(directory):
    import tensorflow as tf

    return tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(directory / "ckpt"))


@pytest.mark.parametrize(
    "words",
    [
        ["run", "nosuch.py"],
        ["preflight", "-m", "nosuch"],
        ["preflight", "--topology", "v9:9x9", "-m", "json.tool"],
        ["to-keras", "--out", "nosuch/a.py", "-m", "json.tool"],
        ["compare", "--dirs", "nosuch", "nosuch"],
        ["compare", "--against", "gpu", "-m", "json.tool"],
        ["compare", "--keep", ".", "-m", "json.tool"],
    ],
)
def test_what_is_wrong_is_told_without_tensorflow(words, tmp_path):
    code = (
        "import atexit, sys; from tpu_estimator_compat.__main__ import main; "
        "atexit.register(lambda: print('tensorflow' in sys.modules)); sys.exit(main(sys.argv[1:]))"
    )
    done = python(code, *words, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stdout == "False\n"
    [line] = done.stderr.splitlines()
    assert f"{words[0]}: " in line


def python(code, *words, cwd):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert re.match(r"tpu_estimator_compat \d\S+, tensorflow\S* \d\S+, Python 3\.\d+", said), said


@pytest.mark.parametrize("lacking", ["tensorflow", "absl"])
def test_outside_of_the_environment(lacking, tmp_path):
    """Python says `No module named tensorflow`, and no more."""
    (tmp_path / "a.py").write_text("")
    without = f"import sys; sys.modules['{lacking}'] = None; import tpu_estimator_compat; "
    run = "from tpu_estimator_compat.__main__ import main; sys.exit(main(['run', 'a.py']))"
    done = python(without + run, cwd=tmp_path)
    assert done.returncode == 1
    *before, line = done.stderr.splitlines()
    assert not before or lacking == "absl"  # TensorFlow, which needs it, has begun to log
    assert f"error: No module named '{lacking}' in the environment of {sys.executable}. Act" in line
    done = python(f"{without}tpu_estimator_compat.TPUEstimator", cwd=tmp_path)
    assert f"ModuleNotFoundError: No module named '{lacking}' in the environment of" in done.stderr
