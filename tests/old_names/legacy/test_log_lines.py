"""TensorFlow's log lines come to the terminal once, however a script sets up logging."""

import pytest

TOLD = "INFO:tensorflow:told"
SETUPS = {
    "nothing": "",
    "logging": "logging.basicConfig(level=logging.INFO)",
    "absl": "from absl import logging as of_absl; of_absl.use_absl_handler()",
    "its own form": """logging.basicConfig(level=logging.INFO, format="mine:%(message)s")
tf.get_logger().handlers.clear()""",
    "a file": "logging.getLogger().addHandler(logging.FileHandler('kept.log'))",
    "no propagation": """logging.basicConfig(level=logging.INFO)
tf.get_logger().propagate = False""",
}


@pytest.mark.parametrize("setup", SETUPS)
def test_a_line_is_told_once(run, tmp_path, setup):
    done = run(
        f"import logging\nimport tensorflow as tf\n{SETUPS[setup]}\n"
        "tf.logging.set_verbosity(tf.logging.INFO)\ntf.logging.info('told')\n"
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "told" in line]
    assert lines == (["mine:told"] if setup == "its own form" else [TOLD])
    if setup == "a file":
        assert (tmp_path / "kept.log").read_text() == "told\n"


def test_a_program_that_goes_through_absl(run):
    done = run(
        """
        import tensorflow as tf
        def main(argv):
            tf.logging.info("told")
        tf.logging.set_verbosity(tf.logging.INFO)
        tf.app.run(main)
        """
    )
    assert [line for line in done.stderr.splitlines() if "told" in line] == [TOLD]
