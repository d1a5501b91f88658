"""Installed packages that use names that TensorFlow dropped are as old as the script."""

import pytest

from tpu_estimator_compat.old_names.legacy.old_packages import OldPackages

from .conftest import environment, installed

HOOK = "import tensorflow as tf\nclass Hook(tf.estimator.SessionRunHook):\n    pass\n"
IMPORT = "from tensorflow.compat.v1 import estimator as tf_estimator"


def install(site, top, summary, modules):
    installed(site, top, [top], summary)
    for name, source in {"__init__.py": "", **modules}.items():
        (site / top / name).parent.mkdir(parents=True, exist_ok=True)
        (site / top / name).write_text(source)
    return str(site / top / "__init__.py")


def is_old(tmp_path, monkeypatch, modules, summary="Configures TensorFlow.", exempt=()):
    monkeypatch.syspath_prepend(str(tmp_path))
    origin = install(tmp_path, "some_package", summary, modules)
    return OldPackages(exempt).has("some_package", origin)


@pytest.mark.parametrize(
    "source",
    [
        HOOK,
        "from tensorflow.contrib import tpu",
        IMPORT,
        "import tensorflow.compat.v1 as tf\ndef f(net):\n    return tf.estimator.Estimator(net)\n",
        "import tensorflow_estimator",
        "import tensorflow as tf\ntry:\n    pass\nexcept ImportError:\n    tf.contrib.layers\n",
    ],
)
def test_by_what_any_of_their_modules_names(tmp_path, monkeypatch, source):
    assert is_old(tmp_path, monkeypatch, {"below/module.py": source})


@pytest.mark.parametrize(
    "modules",
    [
        {},
        {"module.py": "from tensorflow.keras import layers\nlayers.Dense(1)\n"},
        {"module.py": '"""As tf.contrib.layers did."""\nx = "tf.estimator.Estimator"\n'},
        {"module.py": f"try:\n    {IMPORT}\nexcept ImportError:\n    x = 1\n"},
        {"module.py": "import tensorflow as tf\ngetattr(tf, 'estimator', 0)  # tf.estimator\n"},
        {"module_test.py": HOOK, "test_module.py": HOOK, "tests/module.py": HOOK},
        {"module.py": "import tensorflow as tf\nprint tf.contrib\n"},
    ],
)
def test_not_for_what_packages_of_today_do(tmp_path, monkeypatch, modules):
    assert not is_old(tmp_path, monkeypatch, modules)


def test_only_packages_of_tensorflow_that_are_not_exempt(tmp_path, monkeypatch):
    assert not is_old(tmp_path, monkeypatch, {"module.py": HOOK}, summary="Reads files.")
    other = tmp_path / "other"
    exempt = ["some_package"]
    assert not is_old(other, monkeypatch, {"module.py": HOOK}, exempt=exempt)


def test_tf_slim_is_one():
    assert OldPackages().has("tf_slim", "tf_slim/__init__.py")
    assert not OldPackages(["tf_slim"]).may_have("tf_slim")


SLIM = """
import tensorflow.compat.v1 as tf
import tf_slim as slim

tf.disable_v2_behavior()
with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm):
    net = slim.conv2d(tf.ones([1, 4, 4, 2]), 3, 3)
print(slim.flatten(net).shape, [v.op.name for v in tf.global_variables()])
"""


@pytest.mark.slow
def test_scripts_use_tf_slim(forks, tmp_path):
    (tmp_path / "script.py").write_text(SLIM)
    words = ["-m", "tpu_estimator_compat", "run", tmp_path / "script.py"]
    done = forks.run(*words, env=environment())
    assert done.stdout.startswith("(1, 48) ['Conv/weights', 'Conv/BatchNorm/beta',"), done.stderr


@pytest.mark.slow
def test_scripts_import_them(forks, tmp_path):
    site = tmp_path / "site"
    install(site, "hooks_of_old", "For TensorFlow", {"early.py": "", "late.py": HOOK})
    script = tmp_path / "scripts" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import hooks_of_old.early\nfrom hooks_of_old import late\nprint(late.Hook)\n"
    )

    def run(*options):
        words = ["-m", "tpu_estimator_compat", "run", *options, script]
        return forks.run(*words, env=environment(site))

    done = run()
    assert done.stdout == "<class 'hooks_of_old.late.Hook'>\n", done.stderr
    as_it_is = run("--modern-package", "hooks_of_old")
    assert "module 'tensorflow' has no attribute 'estimator'" in as_it_is.stderr
