"""A process that has imported modules once, and forks another for each script that it is given.

A script, not a module: it knows nothing of tests, and runs under any Python from 3.7 on.

    fork_server.py SOCKET PID MODULE...

It listens on the Unix socket SOCKET, and ends with the process PID, or by SIGTERM. At its end, it
removes the socket's folder with all contents. A client sends one line of JSON: `words` (what
follows `python`: a script, `-m MODULE` or `-c CODE`, and arguments), `cwd`, `env` (the whole
environment) and `files` (paths of stdin, stdout and stderr; the last two may be one). The server
answers with the script's process id, and after the script with its exit status, negative for a
signal. If the client hangs up, the server kills the script.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys


def serve(address, pid):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address + ".new")
    listener.listen(16)
    os.rename(address + ".new", address)  # at this path, it accepts connections
    running = {}  # connections by process id
    told_to_stop = []
    signal.signal(signal.SIGTERM, lambda *unused_signal: told_to_stop.append(True))
    while _is_alive(pid) and not told_to_stop:
        pause = 0.02 if running else 0.2
        ready, _, _ = select.select([listener, *running.values()], [], [], pause)
        for connection in ready:
            if connection is listener:
                client, _ = listener.accept()
                job = json.loads(client.makefile().readline())
                child = os.fork()
                if child == 0:
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                    for each in (listener, client, *running.values()):
                        each.close()
                    return job
                running[child] = client
                with contextlib.suppress(OSError):  # it hung up
                    client.sendall(f"{child}\n".encode())
            else:  # the client went away
                [child] = [c for c, its in running.items() if its is connection]
                _kill(child)
        _tell_of_the_ended(running)
    for child in running:
        _kill(child)
    shutil.rmtree(os.path.dirname(address), ignore_errors=True)
    os._exit(0)


def _tell_of_the_ended(running):
    for child in list(running):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            with running.pop(child) as client:
                with contextlib.suppress(OSError):  # it hung up
                    client.sendall(f"{code}\n".encode())


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _kill(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)  # it has no group of its own yet


def become(job):
    """Makes this process what `python WORDS...` would be, up to the script's first line."""
    os.setsid()
    for number, path in enumerate(job["files"]):
        if number == 2 and path == job["files"][1]:
            os.dup2(1, 2)
            continue
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(path, flags, 0o666)
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["cwd"])
    before = _folders(os.environ)
    os.environ.clear()
    os.environ.update(job["env"])
    kept = [folder for folder in sys.path if folder not in before]
    sys.path[:] = [*_folders(os.environ), *kept]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)


def _folders(environment):
    return [p for p in environment.get("PYTHONPATH", "").split(os.pathsep) if p]


def main():
    address, pid, modules = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:
        del sys.path[0]  # this file's neighbours are not top-level modules
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    job = serve(address, pid)
    become(job)
    words = job["words"]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), vars(sys.modules["__main__"]))
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
