"""The same models exported by the published original and here: same SavedModels, same answers.

The original trains a model of each case; both export its checkpoint. What came out is read as data
and compared, then loaded by both versions of TensorFlow and asked the same questions.
"""

import functools
import glob
import json
import os
import pathlib
import re

import numpy as np
import pytest
from support.forks import Forks
from support.sharing import shared

from . import describe_saved_model as describe
from . import serving_probe

pytestmark = [pytest.mark.slow, pytest.mark.parity]

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
TOLERANCE = 1e-6
NAMES = ["plain", "old_name", "as_text", "bare", "heads", "tables", "modes", "eval_only", "convnet"]
NAMES += ["keras_layers", "sparse"]
NAMES += ["tpu_1", "tpu_averaged", "tpu_2", "tpu_2_nested", "tpu_2_unbatched"]
NOT_BY_THE_ORIGINAL = ["tpu_only"]  # it wanted a TPU, to write variables next to a graph for one


def run(forks: Forks, script: str, *arguments: str) -> None:
    done = forks.run(HERE / script, *arguments, env=ENVIRONMENT, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{script}:\n{done.stderr[-3000:]}")


def export_both(original: Forks, ours: Forks, root: pathlib.Path) -> None:
    """The exports of both sides, from checkpoints that the original trained."""
    models = str(root / "models")
    for side, forks in (("original", original), ("ours", ours)):
        place = ["--side", side, "--models", models, "--out", str(root / side)]
        run(forks, "export_driver.py", *place, "--cases", ",".join(NAMES))


@pytest.fixture
def exports(original, forks, tmp_path_factory):
    """`exports(side, case)` is the path of a SavedModel."""
    make = functools.partial(export_both, original.forks, forks)
    root = shared(tmp_path_factory, "exports", make)

    def path(side: str, case: str) -> str:
        [found] = glob.glob(str(root / side / case / "*"))
        return found

    return path


def test_the_cases_are_all_compared(cases):
    assert {*NAMES, *NOT_BY_THE_ORIGINAL} == set(cases.CASES)


@pytest.mark.parametrize("name", NAMES)
def test_same_files_and_variables(name, exports):
    ours, theirs = exports("ours", name), exports("original", name)
    assert describe.files(ours) == describe.files(theirs)
    assert os.path.basename(ours).isdigit()
    found = describe.variables(ours)
    expected = describe.variables(theirs)
    assert found.keys() == expected.keys()
    for key in expected:
        np.testing.assert_array_equal(found[key], expected[key], err_msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_same_graphs(name, exports, cases):
    ours, theirs = (
        describe.graphs(exports("ours", name)),
        describe.graphs(exports("original", name)),
    )
    assert ours.keys() == theirs.keys()
    for tags, graph in theirs.items():
        found = ours[tags]
        if not cases.CASES[name].own_ops:
            assert without_tensors(found) == without_tensors(graph)
            continue
        assert describe.difference(describe.signatures(found), describe.signatures(graph)) == []
        if name == "tpu_averaged" and "tpu" in tags:
            continue  # There the original has a saver inside the TPU's computation: no way to load.
        assert describe.difference(collections(found), collections(graph)) == []
        assert describe.difference(nodes(found), nodes(graph)) == []
        assert describe.functions(found) == describe.functions(graph)
        assert found.saver_def == graph.saver_def
        assert found.asset_file_def == graph.asset_file_def
        stripped = [g.meta_info_def.stripped_default_attrs for g in (found, graph)]
        assert stripped[0] == stripped[1]


def without_tensors(graph):
    """Signatures without the names of their tensors, in which Keras has a say."""
    found = describe.signatures(graph)
    for signature in found.values():
        for side in ("inputs", "outputs"):
            signature[side] = {key: info[1:] for key, info in signature[side].items()}
    return found


def nodes(graph):
    """Nodes without what another version of TensorFlow writes, or chance."""
    found = describe.nodes(graph)
    for name, node in found.items():
        attributes = node["attributes"]
        if node["op"] == "MatMul":
            for new in ("grad_a", "grad_b"):  # tell a gradient's product, since TensorFlow 2.16
                attributes.pop(new, None)
        if node["op"] == "HashTableV2":
            attributes["shared_name"] = re.sub(r"[0-9a-f-]{36}", "", attributes["shared_name"])
        if name.endswith("/StatelessRandomGetKeyCounter/seed"):
            # Keras draws its initializers' seeds from Python; here the config's seed reaches them.
            del attributes["value"]
    return found


def collections(graph):
    """Collections; the global step's aggregation over replicas (8, or "H") is not told here."""
    found = describe.collections(graph)
    return {
        key: [re.sub(r"(global_step/Initializer/zeros:0)H$", r"\1", item) for item in items]
        for key, items in found.items()
    }


LOADERS = [
    ("original", "v1"),
    ("original", "v2"),
    ("ours", "v1"),
    ("ours", "v2"),
    ("ours", "keras"),
]


def can_load(loader: str, case) -> bool:
    """TFSMLayer gives no tags, and TensorFlow wants some where there are several graphs."""
    return loader != "keras" or case.graphs == 1


def ask(forks: Forks, root: pathlib.Path, exports, cases, interpreter: str) -> None:
    """Answers of all SavedModels by all loaders of one interpreter, in `root`."""
    tasks = []
    for name in filter(lambda name: cases.CASES[name].served, NAMES):
        requests = str(root / f"{name}.requests.npz")
        serving_probe.save(requests, cases.CASES[name].requests())
        for side in ("original", "ours"):
            for owner, loader in LOADERS:
                if owner != interpreter or not can_load(loader, cases.CASES[name]):
                    continue
                out = str(root / f"{name}.{side}.{owner}.{loader}.npz")
                path = exports(side, name)
                tasks.append({"path": path, "loader": loader, "requests": requests, "out": out})
    job = root / f"{interpreter}.json"
    job.write_text(json.dumps(tasks))
    run(forks, "serving_probe.py", str(job))


@pytest.fixture
def answers(original, forks, exports, cases, tmp_path_factory):
    """`answers(case, side, interpreter, loader)`: values by signature and output."""

    def make(root: pathlib.Path) -> None:
        ask(original.forks, root, exports, cases, "original")
        ask(forks, root, exports, cases, "ours")

    root = shared(tmp_path_factory, "answers", make)
    return lambda *key: serving_probe.load(str(root / f"{'.'.join(key)}.npz"))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "eval_only"])
def test_same_answers_from_every_loader(name, answers, cases):
    expected = answers(name, "original", "original", "v1")
    assert expected
    for interpreter, loader in LOADERS:
        if not can_load(loader, cases.CASES[name]):
            continue
        for side in ("original", "ours"):
            assert_same(answers(name, side, interpreter, loader), expected)


def assert_same(found, expected):
    """Same keys, dtypes and shapes; values to 1e-6."""
    assert found.keys() == expected.keys()
    for signature, outputs in expected.items():
        assert found[signature].keys() == outputs.keys()
        for key, value in outputs.items():
            actual = found[signature][key]
            assert (actual.dtype, actual.shape) == (value.dtype, value.shape)
            if value.dtype == object:
                assert actual.tolist() == value.tolist()
            else:
                np.testing.assert_allclose(actual, value, rtol=TOLERANCE, atol=TOLERANCE)


def test_a_saved_model_of_the_original_warm_starts_ours(exports, cases, tmp_path):
    path = exports("original", "plain")
    expected = describe.variables(path)
    case = cases.CASES["plain"]
    est = cases.make_estimator(case, str(tmp_path / "model"), warm_start_from=path)
    est.train(case.input_fn, steps=1)
    first = describe.checkpoint(str(tmp_path / "model" / "model.ckpt-0"))
    for name in ("tower/hidden", "tower/output"):
        np.testing.assert_array_equal(first[name], expected[name])
    assert first["global_step"] == 0
