"""Wrong calls of the commands: a line that says what is wrong, no traceback, no waiting."""

import re
import subprocess
import sys

import pytest

from tpu_estimator_compat.__main__ import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("nosuch", r"invalid choice: 'nosuch'"),
        ("run", "the following arguments are required: script"),
        ("run nosuch.py", r"run: error: there is no script 'nosuch\.py' in "),
        ("run .", r"run: error: '\.' is a directory; name the script in it"),
        ("run -m nosuch.module", r"there is no module 'nosuch\.module' with Python source"),
        ("run -m sys", r"there is no module 'sys' with Python source"),
        ("run -m ./script.py", r"there is no module '\./script\.py' with Python source"),
        ("run --behavior v3 a.py", r"argument --behavior: invalid choice: 'v3'"),
        ("run --logical-cpus two a.py", "--logical-cpus: expected a number of devices, got 'two'"),
        ("run --logical-cpus -2 a.py", "--logical-cpus: expected a number of devices, got '-2'"),
        ("run --legacy-package", "argument --legacy-package: expected one argument"),
        ("run --nosuch a.py", "unrecognized arguments: --nosuch"),
        ("scan", "the following arguments are required: PATH"),
        ("scan nosuch.py", r"scan: There is no file or folder 'nosuch\.py'"),
        ("scan .", r"scan: no Python files in \."),
        ("migrate", "the following arguments are required: PATH"),
        ("migrate nosuch.py", r"migrate: There is no file or folder 'nosuch\.py'"),
        ("preflight", "the following arguments are required: script"),
        ("preflight nosuch.py", r"preflight: error: there is no script 'nosuch\.py' in "),
        ("preflight --mode both a.py", r"argument --mode: invalid choice: 'both'"),
        ("preflight --depth deep a.py", r"argument --depth: invalid choice: 'deep'"),
        ("preflight --time-limit long a.py", "--time-limit: invalid float value: 'long'"),
        ("preflight --topology v9:9x9 there.py", "Unknown TPU generation in topology 'v9:9x9'"),
        ("preflight --topology v5e there.py", "does not say how the chips are arranged"),
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
    for text, name in (("", "there.py"), (_TWIN, "twin.py")):
        (places / name).write_text(text)
    arguments = [f"places/{w}" if w.startswith(("there", "twin")) else w for w in words.split()]
    if words in ("scan .", "map-weights . twin.py:f"):
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
    assert status not in (0, None)


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


@pytest.mark.parametrize("words", [["run", "nosuch.py"], ["preflight", "-m", "nosuch"]])
def test_a_missing_script_is_told_of_without_tensorflow(words, tmp_path):
    code = (
        "import sys; from tpu_estimator_compat.__main__ import main; status = main(sys.argv[1:]); "
        "print(status, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "2 False\n"
    [line] = done.stderr.splitlines()
    assert line.startswith(f"python -m tpu_estimator_compat {words[0]}: error: there is no ")
