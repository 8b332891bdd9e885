"""Snakemake and docmt without start-up time. A process that has imported their modules forks for every call.

A dry run of the smoke study takes 0.7 s of CPU instead of 2.6 s, and `docmt decode` 0.4 s instead of 2 s. Calls only
share imported modules. Folder, environment and standard streams are separate.
"""

import atexit
import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from functools import cache
from pathlib import Path

PROGRAMS = {"snakemake": "snakemake.cli", "docmt": "docmt.cli.main"}
IMPORTED = (
    *("docmt.config.plan", "docmt.slurm", "docmt.snakemake", "docmt.status.study"),
    *("docmt.corpora.commands", "docmt.controlled.commands", "docmt.text.commands", "docmt.discourse.commands"),
    *("docmt.instances.commands", "docmt.training.commands", "docmt.training.run", "docmt.decoding.commands"),
    *("docmt.evaluation.commands", "docmt.report.commands", "docmt.report.page"),
)


def run(program, arguments, *, environment=None, cwd=None, programs=()):
    """Like `subprocess.run` of a program with these arguments. A docmt that its jobs call starts as fast.

    PATH gets the folders `programs` in front.
    """
    import subprocess
    import tempfile

    folder = _server()
    environment = dict(os.environ if environment is None else environment)
    environment["PATH"] = os.pathsep.join([*map(str, programs), str(folder / "bin"), environment.get("PATH", "")])
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = ask(folder, [program, *map(str, arguments)], environment, cwd or os.getcwd(), (nothing, out, err))
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([program, *arguments], code, out.read(), err.read())


def docmt():
    """Path of a docmt that starts as fast."""
    return _server() / "bin/docmt"


def ask(folder, words, environment, cwd, streams):
    """Exit code of a call. Negative if a signal ended it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "socket"))
        socket.send_fds(connection, [b"!"], [stream.fileno() for stream in streams])
        connection.sendall(f"{json.dumps([words, environment, str(cwd)])}\n".encode())
        return int(connection.recv(16))


@cache
def _server():
    """Folder of this process's server. The server ends when its standard input is closed."""
    import subprocess
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="warm"))
    (folder / "bin").mkdir()
    program = folder / "bin/docmt"
    program.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, sys\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from warm import ask\n"
        f"folder, streams = Path({str(folder)!r}), (sys.stdin, sys.stdout, sys.stderr)\n"
        'code = ask(folder, ["docmt", *sys.argv[1:]], dict(os.environ), os.getcwd(), streams)\n'
        "sys.exit(128 - code if code < 0 else code)\n"
    )
    program.chmod(0o755)
    command = [sys.executable, "-P", __file__, str(folder)]  # -P: modules of tests are not those of docmt
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    _server.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    _server.process.stdout.readline()
    return folder


def serve(folder):
    """Answer calls in separate processes, until standard input is closed."""
    import importlib

    programs = {name: importlib.import_module(module).main for name, module in PROGRAMS.items()}
    for module in IMPORTED:
        importlib.import_module(module)
    importlib.import_module("docmt.corpora.catalog").load_catalog()
    importlib.import_module("snakemake.cli").parse_args(["--dry-run"])  # imports the plugins
    gc.freeze()  # or each call would copy the memory of all modules when it looks for garbage
    server = socket.create_server(str(folder / "socket"), family=socket.AF_UNIX)
    print(flush=True)
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            answer(connection, programs)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    shutil.rmtree(folder)


def answer(connection, programs):
    """Run the program of a call in another process, and send its exit code. Neither process returns.

    They end without Python's clean-up, which takes a second with all these modules.
    """
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    words, environment, cwd = json.loads(connection.makefile().readline())
    if process := os.fork():
        ended = os.pidfd_open(process)
        if ended not in select.select([ended, connection], [], [])[0]:
            os.killpg(process, signal.SIGTERM)  # who called is gone
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        connection.sendall(str(code).encode())
        os._exit(0)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    try:
        code = programs[words[0]](words[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
