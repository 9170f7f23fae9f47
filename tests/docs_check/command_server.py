"""Runs the commands of pages in forks of one process that has already imported ``penstock``.

Most commands of the pages take a second of processor time, and nearly all of it is imports. The script ``CLIENT``
stands in for ``penstock``: it hands its arguments, folder, variables, input and output to this server, passes signals
on, and ends as the command ends. The server imports nothing of the tests, so commands find only what the environment
has.

Run as ``python command_server.py FOLDER``; it prints a line when it is ready.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

SOCKET = "commands"
# The variable that says that the next command is to be a process of its own.
OWN_PROCESS = "DOCS_OWN_PROCESS"
# {python} and {folder} are filled in. -I and -S: it starts in 15 ms, because it imports no packages.
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
if os.environ.get({own!r}):  # the page uses the number of the process
    os.execv({python!r}, [{python!r}, "-P", "-c", "from penstock.cli import main; main()", *sys.argv[1:]])
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
os.chdir({folder!r})  # the whole path may be too long for a socket
link = socket.socket(socket.AF_UNIX)
link.connect({socket!r})
message = len(asked).to_bytes(8, "big") + asked
link.sendall(message[socket.send_fds(link, [message], [0, 1, 2]):])
answers = link.makefile("rb")
process = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: os.kill(process, number))
code = int(answers.readline() or -9)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def client(python: str, folder: str) -> str:
    return CLIENT.format(python=python, folder=folder, socket=SOCKET, own=OWN_PROCESS)


def main(folder: str) -> None:
    os.chdir(folder)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen(64)
    # With all commands it imports nearly everything that one of them needs.
    importlib.import_module("penstock.cli.entry_point").command_line()
    gc.freeze()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    # The process that waits for another one gets its processor time, which `tests/suite` reports.
    signal.signal(signal.SIGCHLD, _wait_for_ended)
    while True:
        link, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _attend(link)
            return  # only the command gets here
        link.close()


def _wait_for_ended(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _attend(link: socket.socket) -> None:
    """Start the command, and tell the client how it ended. Kill the command if the client is killed."""
    arguments, folder, variables, streams = _receive(link)
    wake, woken = os.pipe()
    command = os.fork()
    if command == 0:
        link.close()
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _become(arguments, folder, variables)
        return
    for stream in streams:
        os.close(stream)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    link.sendall(f"{command}\n".encode())
    ended, code = os.waitpid(command, os.WNOHANG)
    while not ended:
        ready, _, _ = select.select([link.fileno(), wake], [], [])
        if link.fileno() in ready:  # the client sends nothing more, so it has ended
            os.kill(command, signal.SIGKILL)
            os._exit(1)
        os.read(wake, 1)
        ended, code = os.waitpid(command, os.WNOHANG)
    link.sendall(f"{os.waitstatus_to_exitcode(code)}\n".encode())
    os._exit(0)


def _receive(link: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    message, streams, _, _ = socket.recv_fds(link, 65_536, 3)
    while len(message) < 8 or len(message) < 8 + int.from_bytes(message[:8], "big"):
        message += link.recv(65_536)
    arguments, folder, variables = json.loads(message[8:])
    return arguments, folder, variables, streams


def _become(arguments: list[str], folder: str, variables: dict[str, str]) -> None:
    sys.argv = arguments
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.path.insert(0, str(Path(arguments[0]).parent))  # as Python does for a script
    importlib.invalidate_caches()  # `pip install` may have added packages
    importlib.import_module("penstock.cli").main()


if __name__ == "__main__":
    main(sys.argv[1])
