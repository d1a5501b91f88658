"""Functions in processes with replicas of their own: `with_replicas`."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import tensorflow as tf
from support import TESTS, inner_pytest, python_path

import tpu_estimator_compat as tpu
from tpu_estimator_compat import testing
from tpu_estimator_compat.testing import devices
from tpu_estimator_compat.testing.replicas import processes

pytestmark = pytest.mark.slow  # a process imports TensorFlow


def cpus(*unused_args):
    return len(tf.config.list_logical_devices("CPU")), len(tf.config.list_logical_devices("GPU"))


def train(steps, batch_size):
    def model_fn(features, labels, mode, params):
        loss = tf.compat.v1.losses.mean_squared_error(labels, features @ _weights())
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        x = np.arange(16, dtype=np.float32).reshape(8, 2) / 10
        dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    config = tpu.RunConfig(tf_random_seed=1)
    estimator = tpu.TPUEstimator(model_fn, train_batch_size=batch_size, config=config)
    estimator.train(input_fn, steps=steps)
    return estimator.get_variable_value("w")


def _weights():
    return tf.compat.v1.get_variable("w", [2, 1], initializer=tf.compat.v1.ones_initializer())


def fail(message):
    print("said before it failed")
    raise KeyError(message)


class Unportable(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} {other}")


def fail_unportably():
    raise Unportable("a", "b")


def say(text):
    print(text)
    print(f"{text} é", file=sys.stderr)
    os.system("echo said by a process")


def end(status):
    print("said before the end")
    os._exit(status)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def give_function():
    return lambda: None


def test_each_call_has_its_number():
    assert [testing.with_replicas(n, cpus) for n in (4, 1, 8)] == [(4, 0), (1, 0), (8, 0)]


def test_training_agrees_between_numbers_of_replicas():
    one, four = (testing.with_replicas(n, train, 2, batch_size=8) for n in (1, 4))
    assert one.shape == (2, 1)
    assert not np.allclose(one, 1)
    np.testing.assert_allclose(one, four, rtol=1e-5)


def test_partial_and_method_are_functions_too():
    assert testing.with_replicas(2, functools.partial(cpus, 1)) == (2, 0)
    assert testing.with_replicas(2, "a b".split) == ["a", "b"]


def test_error_is_raised_with_the_traceback_as_a_note(capfd):
    with pytest.raises(KeyError, match="of this kind") as error:
        testing.with_replicas(2, fail, "of this kind")
    [note] = error.value.__notes__
    assert "In the process that ran it" in note
    assert "raise KeyError(message)" in note
    assert "said before it failed" in capfd.readouterr().out


def test_error_that_cannot_be_given_back_has_its_words():
    with pytest.raises(RuntimeError, match="Unportable: a b") as error:
        testing.with_replicas(2, fail_unportably)
    assert "in fail_unportably" in error.value.__notes__[0]


def test_output_appears_here(capsys):
    testing.with_replicas(2, say, "hello")
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["hello", "said by a process"]
    assert "hello é\n" in captured.err


def test_process_that_ends_is_an_error_that_says_how():
    expected = "(?s)2 replicas ended with exit status 3. Its last output:.*said before the end"
    with pytest.raises(RuntimeError, match=expected):
        testing.with_replicas(2, end, 3)
    with pytest.raises(RuntimeError, match=r"ended by signal 9 \(SIGKILL\)"):
        testing.with_replicas(2, kill_itself)


def test_result_that_cannot_be_pickled_is_an_error():
    with pytest.raises(TypeError, match="cannot give back what the function returned, a function"):
        testing.with_replicas(2, give_function)


def test_function_without_a_name_of_its_own_is_refused():
    def local():
        pass

    for function in (local, lambda: None):
        with pytest.raises(TypeError, match="Define it at the top of a module"):
            testing.with_replicas(2, function)


@pytest.mark.parametrize("number", [0, -1, "4", None, 2.0, True])
def test_wrong_number_is_refused(number):
    with pytest.raises(ValueError, match="give a whole number from 1 on"):
        testing.with_replicas(number, cpus)


def test_argument_that_cannot_be_pickled_is_an_error():
    with pytest.raises(Exception, match=r"pickle") as error:
        testing.with_replicas(2, cpus, lambda: None)
    assert "gives cpus and its arguments to another process" in error.value.__notes__[0]


def test_server_has_made_no_device_and_hides_gpus():
    assert processes.kept_server() is processes.kept_server()
    assert testing.with_replicas(1, is_untouched) == (True, "-1", "cpu")


def is_untouched():
    from tensorflow.python.eager import context as eager

    variables = ("CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS")
    return (not eager.context()._initialized, *map(os.environ.get, variables))


def test_devices_can_be_divided_again():
    assert testing.with_replicas(2, set_devices_again) == [2, 2, 3, 2]


def set_devices_again():
    found = [len(tf.config.list_logical_devices("CPU"))]
    for number in (2, 3, 2):
        devices.divide(number)
        found.append(tf.distribute.MirroredStrategy().num_replicas_in_sync)
    return found


def test_crash_keeps_its_reason_however_long_the_stack_is(tmp_path):
    dump = ["Fatal Python error: Segmentation fault", *[f'  File "{"f" * 80}"'] * 100]
    (tmp_path / "stderr").write_text("\n".join(["loading"] * 900 + ["printed", *dump]))
    output = processes._last_output(tmp_path)
    assert "printed\nFatal Python error: Segmentation fault\n  File" in output
    assert len(output) <= 2 * processes._LAST_OUTPUT


SCRIPT = """
    import os, unittest, sys
    from tpu_estimator_compat import testing

    def cpus():
        import tensorflow as tf
        return len(tf.config.list_logical_devices("CPU")), sys.argv[1:]

    class ReplicasTest(unittest.TestCase):
        def test_numbers(self):
            for number in (3, 1):
                self.assertEqual(testing.with_replicas(number, cpus), (number, ["-v"]))

    print("imported")
    {end}
"""


def run_script(folder, end):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(SCRIPT).format(end=end))
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", str(path), "-v"],
        env={**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def test_script_of_unittest_can_be_its_own_module(tmp_path):
    done = run_script(tmp_path, 'if __name__ == "__main__": unittest.main()')
    assert "Ran 1 test" in done.stdout
    assert done.returncode == 0, done.stdout
    assert "ResourceWarning" not in done.stdout


def test_script_that_is_not_protected_is_told_so(tmp_path):
    done = run_script(tmp_path, "testing.with_replicas(2, cpus)")
    assert done.returncode == 1
    assert 'if __name__ == "__main__"' in done.stdout.replace("'", '"')


def test_interrupted_call_ends_its_process(tmp_path):
    source = f"""
        from tpu_estimator_compat import testing

        def test_interrupted():
            import test_sleep
            testing.with_replicas(2, test_sleep.sleep, {str(tmp_path / "pid")!r})
    """
    inner_pytest.write(
        tmp_path,
        test_m=source,
        test_sleep="""
            import os, pathlib, signal, time

            def sleep(path):
                pathlib.Path(path).write_text(str(os.getpid()))
                os.kill(int(os.environ["TEST_PARENT"]), signal.SIGINT)
                time.sleep(600)
        """,
        conftest='import os\nos.environ["TEST_PARENT"] = str(os.getpid())',
    )
    session = inner_pytest.run(tmp_path, "test_m.py")
    assert "KeyboardInterrupt" in session.output
    pid = (tmp_path / "pid").read_text()
    end = time.monotonic() + 60
    while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not pathlib.Path(f"/proc/{pid}").exists()
