"""A process that a server of `forks` has forked becomes what `python WORDS...` would be.

It knows nothing of tests, and runs under either interpreter.
"""

import atexit
import ctypes
import multiprocessing.connection
import os
import runpy
import signal
import sys
import threading


def run(words, files, cwd, env, parent):
    """Runs a script, `-m MODULE` or `-c CODE`, with arguments, and ends the process.

    `files` are paths of stdin, stdout and stderr; `env` are all variables of the environment.
    """
    os.setsid()
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    for number, path in enumerate(files):
        kind = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
        file = os.open(path, kind, 0o666)
        os.dup2(1 if path == files[1] and number == 2 else file, number)
        os.close(file)
    sys.stdin = os.fdopen(0)
    os.chdir(cwd)
    before = _folders()
    os.environ.clear()
    os.environ.update(env)
    sys.path[:] = [*_folders(), *(folder for folder in sys.path if folder not in before)]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    sys.argv = words
    if sys.version_info >= (3, 13):  # crashes in Py_Exit, once TensorFlow is imported
        _leave(_status())
    status = ctypes.pythonapi.PyRun_SimpleString(b"from support import script; script.execute()")
    ctypes.pythonapi.Py_Exit(-status)


def _status():
    """The exit status of the script, whose error is shown as Python shows it."""
    try:
        execute()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.last_type, sys.last_value, sys.last_traceback = sys.exc_info()
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _leave(status):
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


def _end_with(parent):
    multiprocessing.connection.wait([parent])
    os.killpg(0, signal.SIGKILL)


def _folders():
    return [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]


def execute():
    main = sys.modules["__main__"]
    kind, *rest = sys.argv
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif kind == "-m":
        sys.argv = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(kind)))
        runpy.run_path(kind, run_name="__main__")
