"""Leads drawn models out to Keras: `leading_out.py 0-40` prints a line for each seed.

A line ends with the verdict of `to_keras`, "the program: ..." where it cannot be captured for
a reason of its own, or "error: ..." for all else.
"""

import os
import pathlib
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).parent
OF_SESSIONS = {"initialized_by_hook", "placeholders"}
"""Inputs that only a session with the program's hooks can read."""


def led_out(seed):
    from programs import calls, choices

    given = choices.consistent(choices.drawn(seed))
    if given["v2"] == "off":
        import tensorflow as tf

        tf.compat.v1.disable_v2_behavior()
    if given["input"] in OF_SESSIONS or given["aside"] == "loss":
        return "the program: its model is one with its input"
    try:
        program = calls.Program({**given, "start": "nothing"}, "model", lambda *told: None)
        report = program.estimator.to_keras(program._input_fn(program._input()), "model.py")
    except Exception as error:
        traceback.print_exc()
        return f"error: {type(error).__name__}: {error}"
    differing = [f"{c.kind} {c.name}" for c in report.comparisons if not c.agrees]
    return ": ".join([report.verdict.value, *differing[:3], *report.log.splitlines()[-3:]])


if __name__ == "__main__":
    import tpu_estimator_compat

    sys.path.insert(0, str(HERE))
    tpu_estimator_compat.install(["programs"])
    first, _, last = sys.argv[1].partition("-")
    for seed in range(int(first), int(last or first) + 1):
        child = os.fork()
        if not child:
            os.chdir(tempfile.mkdtemp(prefix="led_out_"))
            print(seed, led_out(seed), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
