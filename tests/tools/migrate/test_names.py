import ast
import contextlib
import io

import pytest

from tpu_estimator_compat.tools.migrate.codemod import migrate_text
from tpu_estimator_compat.tools.scan.findings import Status

from .rewriting import each_rewritten

CASES = {
    # Chains.
    "moved": (
        "import tensorflow as tf\ntf.contrib.tpu.TPUEstimatorSpec(mode)\n",
        "import tpu_estimator_compat.v1 as tf\ntf.estimator.tpu.TPUEstimatorSpec(mode)\n",
    ),
    "moved_module": (
        "import tensorflow as tf\ntf.contrib.tpu.python.tpu.tpu_config.TPUConfig()\n",
        "import tpu_estimator_compat.v1 as tf\ntf.estimator.tpu.TPUConfig()\n",
    ),
    "assigned_alias": (
        "import tensorflow as tf\ntpu = tf.contrib.tpu\ntpu.TPUConfig\n",
        "import tpu_estimator_compat.v1 as tf\ntpu = tf.contrib.tpu\ntpu.TPUConfig\n",
    ),
    "rebound": (
        "import tensorflow as tf\ntf = tf.compat.v1\ntf.Session\ntf.layers.dense\n",
        "import tpu_estimator_compat.v1 as tf\ntf = tf.compat.v1\ntf.Session\ntf.layers.dense\n",
    ),
    "getattr": (
        "import tensorflow as tf\ngetattr(tf, 'contrib').tpu\n",
        "import tpu_estimator_compat.v1 as tf\ngetattr(tf, 'contrib').tpu\n",
    ),
    "canned_models_of_1": (
        "import tensorflow as tf\ntf.Session()\ntf.estimator.LinearClassifier([])\n",
        "import tpu_estimator_compat.v1 as tf\ntf.Session()\ntf.estimator.LinearClassifier([])\n",
    ),
    "canned_models_of_2": (
        "import tensorflow as tf\ntf.estimator.LinearClassifier([])\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "v1.compat.v2.estimator.LinearClassifier([])\n",
    ),
    "canned_models_of_2_in_a_namespace": (
        "from tensorflow import estimator\nestimator.DNNRegressor([], [])\nestimator.RunConfig\n",
        "from tpu_estimator_compat.v1 import estimator\nfrom tpu_estimator_compat import v1\n"
        "v1.compat.v2.estimator.DNNRegressor([], [])\nestimator.RunConfig\n",
    ),
    "letters_before": (
        "import tensorflow as tf\nx = 'éé𝔘', tf.contrib.tpu.TPUConfig\n",
        "import tpu_estimator_compat.v1 as tf\nx = 'éé𝔘', tf.estimator.tpu.TPUConfig\n",
    ),
    "brackets": (
        "import tensorflow as tf\nx = (tf.contrib.tpu).TPUConfig, (tf\n  .contrib.tpu.TPUConfig)\n",
        "import tpu_estimator_compat.v1 as tf\nx = tf.estimator.tpu.TPUConfig, "
        "(tf.estimator.tpu.TPUConfig)\n",
    ),
    # Python 2.
    "names": (
        "for i in xrange(3):\n    y = long(i) + unichr(raw_input())\n",
        "for i in range(3):\n    y = int(i) + chr(input())\n",
    ),
    "text": (
        "isinstance(x, (basestring, unicode))\nf'{unicode(x)}'\n",
        "isinstance(x, (str, str))\nf'{str(x)}'\n",
    ),
    "reduce": (
        '"""Doc."""\nfrom __future__ import division\nimport os\nx = (reduce)(f, y)\n',
        '"""Doc."""\nfrom __future__ import division\nimport functools\nimport os\n'
        "x = (functools.reduce)(f, y)\n",
    ),
    "reduce, with functools": (
        "import functools\nx = reduce(f, y)\n",
        "import functools\nx = functools.reduce(f, y)\n",
    ),
    "methods": (
        "for k, v in a.b.iteritems():\n    x = sorted(c().viewkeys()) + d['e'].itervalues ()\n",
        "for k, v in a.b.items():\n    x = sorted(c().keys()) + d['e'].values ()\n",
    ),
    "print": (
        "import tensorflow as tf\n"
        "if x: print 'a  %s' % x, tf.contrib.tpu.TPUConfig,  # why\nprint\n",
        "import tpu_estimator_compat.v1 as tf\n"
        "if x: print('a  %s' % x, tf.estimator.tpu.TPUConfig, end=' ')  # why\nprint()\n",
    ),
    "print to a file": (
        "print >>sys.stderr, 'é', x\nprint >>f\nprint >>open(a, 'w'), x,\nprint >>f, ('a',\n  b)\n",
        "print('é', x, file=sys.stderr)\nprint(file=f)\nprint(x, file=open(a, 'w'), end=' ')\n"
        "print(('a',\n  b), file=f)\n",
    ),
    "print over lines": (
        "print 'a', \\\n    'é'; print 'b'\n",
        "print('a', \\\n    'é'); print('b')\n",
    ),
    "except and raise": (
        "try:\n  raise IOError, 'a'\nexcept (IOError, KeyError), e:\n  raise E, str(e)\r\n",
        "try:\n  raise IOError('a')\nexcept (IOError, KeyError) as e:\n  raise E(str(e))\r\n",
    ),
}

test_rewritten = each_rewritten(CASES)


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    unicode\nexcept NameError:\n    unicode = str\nunicode(x)\n",
        "try:\n    text = basestring\nexcept NameError:\n    text = str\n",
        "from six.moves import xrange\nxrange(3)\n",
        "if six.PY2:\n    text = unicode(x)\n",
        "text = unicode if sys.version_info[0] < 3 else str\n",
        "def f(long, reduce=None):\n    return long, reduce(x, long=1)\n",
        "six.iteritems(d)\nd.iteritems(1)\nx = d.iteritems\n",
        "class D(dict):\n    def iteritems(self):\n        return self.items()\nD().iteritems()\n",
        "print(x)\nprint((x, y), file=f)\ns = '''\nprint x\nprint >>f, x\n'''\n",
    ],
)
def test_what_is_of_both_pythons_stays(text):
    migration = migrate_text(text, "a.py")
    assert migration.after == text
    assert migration.found == []


@pytest.mark.parametrize(
    "text",
    [
        "exec code in namespace\nprint 'x'\n",
        "print 'x'\nx = 0777\n",
        "print 'x'\nraise E, ('a',\n  'b')\n",
        "print 'x'\ny = `x`\n",
    ],
)
def test_what_cannot_be_rewritten_for_certain_leaves_the_file(text):
    migration = migrate_text(text, "a.py")
    assert migration.after == text
    [finding] = migration.left
    assert finding.status is Status.UNREADABLE
    assert "2to3" in finding.advice


def test_a_name_that_has_another_meaning_in_the_module_is_left():
    migration = migrate_text("input = 1\nx = raw_input()\ny = xrange(2)\n", "a.py")
    assert migration.after == "input = 1\nx = raw_input()\ny = range(2)\n"
    assert [(f.name, f.status) for f in migration.left if f.name != "Python 2"] == [
        ("raw_input", Status.BY_HAND)
    ]


def test_what_differs_silently_is_to_be_looked_at():
    [differs] = [f for f in migrate_text("x = 1\nprint 1 / 2\n", "a.py").report(True) if f.name]
    assert (differs.line, differs.status) == (2, Status.DIFFERS)
    assert "`/` of two integers gave an integer" in differs.advice


def test_what_is_printed_is_what_python_2_printed():
    """By the statements' documentation: blanks between, and no new line after a comma."""
    after = migrate_text("print 'a', 1,\nprint\nprint 'b'\nprint ('c'), 2\n", "a.py").after
    ast.parse(after)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(after, {})
    assert out.getvalue().split("\n")[:2] == ["a 1 ", "b"]
