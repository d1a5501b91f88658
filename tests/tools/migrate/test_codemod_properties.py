import ast
import pathlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tables import failures

from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, meaning
from tpu_estimator_compat.old_names.legacy.references import Form
from tpu_estimator_compat.tools.migrate.codemod import migrate_text
from tpu_estimator_compat.tools.scan.findings import Status
from tpu_estimator_compat.tools.scan.module import parse, scan_text

IMPORTS = [
    ("import tensorflow as tf", "tf", ""),
    ("import tensorflow", "tensorflow", ""),
    ("import tensorflow.compat.v1 as tf", "tf", ""),
    ("import tensorflow.compat.v1 as tf1", "tf1", ""),
    ("import tensorflow.compat.v2 as tf2", "tf2", ""),
    ("from tensorflow.compat import v1 as old", "old", ""),
    ("import tensorflow.contrib.tpu", "tensorflow", ""),
    ("import tensorflow.estimator", "tensorflow", ""),
    ("from tensorflow import estimator", "estimator", "estimator."),
    ("from tensorflow import estimator as e, keras", "e", "estimator."),
    ("from tensorflow.contrib import tpu as ctpu, nothing", "ctpu", "contrib.tpu."),
    ("from tensorflow import contrib", "contrib", "contrib."),
    ("from tensorflow.compat.v1 import nn, flags", "nn", "nn."),
    ("import tensorflow.contrib.tpu as t", "t", "contrib.tpu."),
    ("from tensorflow.estimator import (\n    tpu,\n    export as x,\n)", "x", "estimator.export."),
    ("import tensorflow_estimator as tfe", "tfe", ""),
]
NAMES = [
    "estimator.Estimator",
    "estimator.tpu.TPUEstimator",
    "estimator.export.ServingInputReceiver",
    "estimator.LinearClassifier",
    "compat.v1.estimator.RunConfig",
    "compat.v1.layers.dense",
    "compat.v1.placeholder",
    "contrib.tpu.TPUConfig",
    "contrib.tpu.python.tpu.tpu_config.TPUConfig",
    "contrib.tpu.nothing",
    "layers.dense",
    "placeholder",
    "Session",
    "nn.rnn_cell.LSTMCell",
    "nn.relu",
    "keras.Input",
    "function",
]
NAMESPACES = ["compat.v1", "contrib", "contrib.tpu", "estimator", "nn", "keras"]
USES = [
    "{}",
    "x = {}(1, y = {})  # why",
    "def f(a={}):\n    return [{} for b in a]",
    "class A({}):\n    def f(self):\n        return lambda v1: {}",
    "if {}: y = {}; z = 'é', {}",
    "x = ( {}\n      [0])",
    "@{}\ndef g(): pass",
]
PLAIN = [
    "",
    "# tf.contrib.tpu",
    "'''Doc of tf.estimator.'''",
    "import os, sys",
    "v1 = 3",
    "\f",
    "1",
]


@st.composite
def modules(draw):
    imports = draw(st.lists(st.sampled_from(IMPORTS), min_size=1, max_size=3))
    by_alias = {alias: (line, below) for line, alias, below in imports}
    lines = [line for line, _ in by_alias.values()]
    if draw(st.booleans()):
        lines = ["try:", *("    " + line for line in lines), "except ImportError:", "    pass"]
    lines = [*draw(st.lists(st.sampled_from(PLAIN), max_size=2)), *lines]
    roots = sorted(alias for alias, (_, below) in by_alias.items() if not below and alias != "tfe")
    for assigned in draw(st.lists(st.sampled_from(["p", "q"]), unique=True)) if roots else []:
        below = draw(st.sampled_from(NAMESPACES))
        lines.append(f"{assigned} = {draw(st.sampled_from(roots))}.{below}")
        by_alias[assigned] = ("", f"{below}.")
    for _ in range(draw(st.integers(0, 4))):
        lines.append(draw(st.sampled_from(USES)).replace("{}", "\0"))
        while "\0" in lines[-1]:
            alias, (_, below) = draw(st.sampled_from(sorted(by_alias.items())))
            fitting = [name.removeprefix(below) for name in NAMES if name.startswith(below)]
            if alias == "tfe":  # that package has nothing else
                fitting = [name for name in fitting if name.startswith("estimator.")]
            chain = f"{alias}.{draw(st.sampled_from(fitting))}"
            lines[-1] = lines[-1].replace("\0", chain, 1)
        lines += draw(st.lists(st.sampled_from(PLAIN), max_size=1))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(lines).replace("\n", newline)
    return text + draw(st.sampled_from(["", newline]))


def meant(text):
    """What the chains of a module mean: the API, and the name where it is to be found today."""
    module = parse(text)
    found = {}  # by node: an alias that is bound twice may mean two things
    for reference, said in module.references:
        if reference.form is not Form.ATTRIBUTE:
            continue
        root, _, rest = reference.path.partition(".")
        if root == "tpu_estimator_compat":
            api, name = meaning(f"tensorflow.{rest.partition('.')[2]}", Dialect.V1)
        elif root == "tensorflow_estimator":
            # The API's own modules, by which the package's source names them.
            api, name = Dialect.V1, rest.removeprefix("python.estimator.api._v1.")
        else:
            api, name = meaning(reference.path, module.bare)
        row = table.load().covering(f"tf.{name}")
        if row is not None and row.move_to:
            name = row.move_to.removeprefix("tf.") + name.removeprefix(row.name[3:])
        dead = said is not None and not said.of_2
        found.setdefault(reference.node, set()).add((Dialect.V1 if dead else api, name))
    return list(found.values())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_any_module(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return
    migration = migrate_text(text, "a.py")
    assert migrate_text(migration.after, "a.py").after == migration.after
    assert meant(migration.after) == meant(text)
    by_hand = {f.line for f in migration.left if f.status is Status.BY_HAND}
    for finding in scan_text(migration.after, "a.py"):
        assert finding.status.is_manual or finding.line in by_hand, finding
    kept = [line for line in migration.after.splitlines() if "import v1" not in line]
    for line in text.splitlines():
        if line.strip() in PLAIN:
            assert line in kept
    if "\r" in text:
        assert migration.after.count("\r\n") == migration.after.count("\n")
    elif "\n" in text:
        assert "\r" not in migration.after


HERE = pathlib.Path(__file__).parents[2]
# They have the original's private modules, which have no names in `tf` after migration for `meant`
# to compare; test_codemod_names looks at each of them.
SCENARIOS = HERE / "conformance/scenarios"
PRIVATE = [SCENARIOS / "heads.py", SCENARIOS / "canned.py"]


@pytest.mark.slow
def test_real_files():
    """The tests of this package: legacy models, probes that run in TensorFlow 2.15, and more."""
    files = [
        path
        for path in sorted(HERE.rglob("*.py"))
        if path not in PRIVATE and scan_text(path.read_text(), path.name)
    ]
    assert len(files) >= 10
    assert failures(keeps_its_meaning, files) == []


def keeps_its_meaning(path):
    text = path.read_text()
    migration = migrate_text(text, path.name)
    compile(migration.after, path.name, "exec", dont_inherit=True)
    assert migrate_text(migration.after, path.name).after == migration.after
    assert meant(migration.after) == meant(text)
