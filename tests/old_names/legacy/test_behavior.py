"""Graphs for scripts of TensorFlow 1, and eager execution for those of 2."""

import json

import pytest

EAGERLY = "use --behavior v2: it runs the script eagerly"
WITH_GRAPHS = "use --behavior v1: it runs the script with graphs"


def test_graphs_for_a_script_of_tensorflow_1(run):
    done = run("""
        import tensorflow as tf
        x = tf.placeholder(tf.float32, [None, 3])
        assert x.shape[-1].value == 3
        assert x.shape[0].value is None
        with tf.Session() as session:
            assert session.run(tf.nn.dropout(x, 1.0), {x: [[1, 2, 3]]}).tolist() == [[1, 2, 3]]
        """)
    assert done.returncode == 0, done.stderr


OF_SESSIONS = """
x = tf.placeholder(tf.float32)
with tf.Session() as session:
    print("found", session.run(2 * x, {x: 3}))
"""


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow.compat.v1"])
def test_graphs_for_a_script_whose_modules_alone_know_tensorflow(run, tmp_path, name):
    (tmp_path / "plain.py").write_text("VALUE = 1\n")
    (tmp_path / "model.py").write_text(f"import {name} as tf\n{OF_SESSIONS}")
    done = run("import plain\n\ndef main():\n    import model\n\nmain()\n")
    assert done.stdout == "found 6.0\n", done.stderr


def test_a_script_chooses_eager_execution_for_its_modules(run, tmp_path):
    (tmp_path / "old.py").write_text("import tensorflow as tf\nuse = tf.Session\n")
    done = run("""
        import old
        import tensorflow as tf
        tf.random.set_seed(1)
        assert tf.executing_eagerly()
        """)
    assert done.returncode == 0, done.stderr


def test_modules_that_tell_nothing_mean_what_the_script_means(run, tmp_path):
    (tmp_path / "helper.py").write_text("import tensorflow as tf\nscope = tf.name_scope\n")
    old = run("import tensorflow as tf\nimport helper\ntf.Session\nprint(helper.scope)\n")
    assert "name_scope_v1" in old.stdout, old.stderr
    new = run("import tensorflow as tf\nimport helper\ntf.random.set_seed\nprint(helper.scope)\n")
    assert "name_scope_v2" in new.stdout, new.stderr


def test_a_script_that_tells_nothing_is_what_its_modules_are(run, tmp_path):
    (tmp_path / "old.py").write_text("import tensorflow as tf\nuse = tf.Session\n")
    done = run("import old\nimport tensorflow as tf\nprint(tf.executing_eagerly())\n")
    assert done.stdout == "False\n", done.stderr


def test_graphs_for_a_script_of_compat_v1_that_makes_sessions(run):
    done = run(f"import tensorflow.compat.v1 as tf\n{OF_SESSIONS}")
    assert done.stdout == "found 6.0\n", done.stderr


@pytest.mark.slow
def test_a_script_that_does_not_show_its_age_is_told_of_behavior(run):
    source = """
        import tensorflow.compat.v1 as tf
        print("found", type(tf.train.export_meta_graph("graph.meta")))
        """
    done = run(source)
    assert "not supported when eager execution is enabled" in done.stderr
    assert WITH_GRAPHS in done.stderr
    done = run(source, options=("--behavior=v1",))
    assert "found <class" in done.stdout


@pytest.mark.slow
def test_behavior_may_be_asked_for(run):
    source = "import tensorflow.compat.v1 as tf\nprint('eager', tf.executing_eagerly())\n"
    for asked, eager in (("auto", True), ("v2", True), ("v1", False)):
        assert f"eager {eager}" in run(source, options=(f"--behavior={asked}",)).stdout


def test_eager_for_a_script_of_tensorflow_2(run):
    done = run("""
        import tensorflow as tf
        assert tf.executing_eagerly()
        tf.keras.layers.Dense(3)(tf.zeros([1, 2]))
        assert tf.keras.layers.Dense.__module__.startswith("tf_keras"), tf.keras
        assert tf.estimator.Estimator is tf.compat.v1.estimator.Estimator
        @tf.function
        def double(x):
            return 2 * x
        assert float(double(3.0)) == 6
        """)
    assert done.returncode == 0, done.stderr


def test_a_session_in_a_graph_of_its_own_leaves_the_script_eager(run):
    done = run("""
        import tensorflow.compat.v1 as tf
        print("eager", bool(tf.constant(9.0) > 0))
        with tf.Graph().as_default():
            with tf.Session() as sess:
                print("graph", sess.run(tf.constant(3.0) * 2))
        """)
    assert done.stdout.splitlines() == ["eager True", "graph 6.0"], done.stderr


NUMPY = "import tensorflow.compat.v1 as tf\nx = tf.placeholder_with_default(1.0, [])\n"
DYNAMIC = "import tensorflow as tf\n{}getattr(tf.train, 'Adam' + 'Optimizer')\n"
TOLD = [
    (NUMPY + "[*x]", EAGERLY),
    (NUMPY + "bool(x)", EAGERLY),
    ("import tensorflow.compat.v1 as tf\ntf.constant(1.0).graph", WITH_GRAPHS),
    ("import tensorflow as tf\ngetattr(tf, 'Sess' + 'ion')", "Only TensorFlow 1 has tf.Session"),
    (DYNAMIC.format(""), "Only TensorFlow 1 has tf.train.AdamOptimizer"),
]
UNTOLD = [
    "import tensorflow as tf\ntf.logging\n[*tf.constant(1.0)]",
    "import tensorflow as tf\ntf.summary.create_file_writer\ntf.constant(1.0).graph",
    DYNAMIC.format("tf.summary.create_file_writer\n"),
    "import tensorflow as tf\ngetattr(tf.train, 'Nothing' + 'Optimizer')",
    NUMPY + "raise ValueError('Tensor is not what it was')",
    NUMPY + "x.numpy_array",
    NUMPY + "tf.Session().run(tf.placeholder(tf.float32))",
    "import tensorflow.compat.v1 as tf\n1 / 0",
    "import tensorflow.compat.v1 as tf\nopen('no_such_file')",
    "import tensorflow.compat.v1 as tf\nimport no_such_module",
    "import tensorflow.compat.v1 as tf\ntf.matmul([[1.0]], [[1.0, 2.0], [3.0, 4.0]])",
]


SEVERAL = """
import json, sys
from tpu_estimator_compat.old_names.legacy import script
for source in json.load(open(sys.argv[1])):
    with open("script.py", "w") as file:
        file.write(source)
    try:
        script.run("script.py")
    except Exception as error:
        print(json.dumps(getattr(error, "__notes__", [])))
    else:
        print("no error")
"""


@pytest.fixture
def notes(python, tmp_path):
    """The notes on the errors of several scripts, which one process runs."""

    def of(sources):
        (tmp_path / "sources.json").write_text(json.dumps(sources))
        done = python("-c", SEVERAL, "sources.json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return of


def test_errors_name_the_behavior_that_would_not_raise_them(notes):
    for (source, said), (note,) in zip(TOLD, notes([source for source, _ in TOLD]), strict=True):
        assert said in note, source


def test_other_errors_do_not_speak_of_behavior(notes):
    assert notes(UNTOLD) == [[]] * len(UNTOLD)


def test_a_package_of_tensorflow_2_that_a_script_of_1_imports(run, tmp_path):
    (tmp_path / "young.py").write_text(
        "import tensorflow as tf\nREDUCTION = tf.keras.losses.Reduction.SUM\n"
        "LAYER = tf.keras.layers.TextVectorization\n"
    )
    done = run("import tensorflow as tf\nimport young\nprint(tf.app, young.REDUCTION)")
    assert done.stdout.strip().endswith("sum"), done.stderr
