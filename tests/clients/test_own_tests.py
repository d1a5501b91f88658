"""The packages' own tests, run unchanged; known failures have a reason.

Left out are modules of tf-slim whose `setUp` NumPy refuses (`learning`, `training`, `evaluation`:
an int of an array of one element), those of its networks, which take minutes, and adanet's, which
its authors did not publish.
"""

import json

import pytest

from . import results
from .runs import COMMAND, HERE, python

MODULES = {
    "albert-tensorflow 1.1": ["albert.modeling_test", "albert.optimization_test"],
    "bert-tensorflow 1.0.4": ["bert.modeling_test", "bert.optimization_test"],
    "mesh-tensorflow 0.1.21": [
        "mesh_tensorflow.import_test",
        "mesh_tensorflow.layers_test",
        "mesh_tensorflow.ops_test",
        "mesh_tensorflow.transformer.utils_test",
        "mesh_tensorflow.utils_test",
    ],
    "neural-structured-learning 1.4.0": [
        "neural_structured_learning.estimator.adversarial_regularization_test",
        "neural_structured_learning.estimator.graph_regularization_test",
    ],
    "tensorflow-gan 2.1.0": [
        "tensorflow_gan.python.contrib_utils_test",
        "tensorflow_gan.python.estimator.gan_estimator_test",
        "tensorflow_gan.python.estimator.latent_gan_estimator_test",
        "tensorflow_gan.python.estimator.stargan_estimator_test",
        "tensorflow_gan.python.estimator.tpu_gan_estimator_test",
        "tensorflow_gan.python.losses.losses_impl_test",
        "tensorflow_gan.python.losses.tuple_losses_test",
        "tensorflow_gan.python.train_test",
    ],
    "tf-slim 1.1.0": [
        "tf_slim.layers.layers_test",
        "tf_slim.layers.normalization_test",
        "tf_slim.layers.optimizers_test",
        "tf_slim.ops.arg_scope_test",
        "tf_slim.ops.variables_test",
    ],
}

GRAPHS = {"albert", "bert"}  # whose tests are for TensorFlow 1 alone
NEEDED = {"mesh_tensorflow": ["gin"]}  # packages as old, which they import


@pytest.mark.full
@pytest.mark.parametrize(
    ("package", "module"), [(p, m) for p, modules in MODULES.items() for m in modules]
)
def test_own_tests(package, module, clients, tmp_path):
    top = module.partition(".")[0]
    legacy = [f"--legacy-package={name}" for name in (top, *NEEDED.get(top, ()))]
    path = tmp_path / "outcomes.json"
    graphs = ["--behavior=v1"] if top in GRAPHS else []
    words = [*COMMAND, *graphs, *legacy, str(HERE / "own_tests.py"), str(path), module]
    log = python(clients, tmp_path, "-m", *words)
    outcomes = json.loads(path.read_text())
    ran = {test: error for test, error in outcomes.items() if error != "skipped"}
    failed = {test: error for test, error in ran.items() if error}
    expected = results.expected_failures(module)
    unexpected = {test: error for test, error in failed.items() if test not in expected}
    assert ran, log[-3000:]
    assert not unexpected, json.dumps(unexpected, indent=1) + log[-3000:]
    mended = expected.keys() - failed.keys()
    assert not mended, f"these pass: take them out of {results.EXPECTED.name}"
    results.record(package, module, len(ran) - len(failed), len(ran))


def test_expected_failures_have_reasons():
    for module in (m for modules in MODULES.values() for m in modules):
        for test, reason in results.expected_failures(module).items():
            assert len(reason.split()) > 3, test


def test_readme_has_the_table():
    assert results.BEGIN + results.table() + results.END in results.PAGE.read_text()
