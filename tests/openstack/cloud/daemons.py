"""Processes that outlive the command: each is known by its id and the moment of its start, and leads a process group."""
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from cloud.problem import Problem

GLANCE = 0.1


class Daemons:
    def __init__(self, layout, environment):
        self.layout = layout
        self.environment = environment

    def start(self, name, command, port=None, extra=None):
        """Starts it unless it runs. `extra` is added to its environment."""
        if self.runs(name):
            return
        if port is not None and answers(port):
            raise Problem(f"something else listens on 127.0.0.1:{port}, where {name} should; `stack down` and try again")
        with open(self._log(name), "ab") as log:
            process = subprocess.Popen(command, cwd=self.layout.var, env=dict(self.environment, **(extra or {})),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._file(name).write_text(f"{process.pid} {_start_of(process.pid)}")

    def names(self):
        return sorted(file.stem for file in self.layout.run.glob("*.pid"))

    def runs(self, name):
        return self._process(name) is not None

    def wait(self, name, seconds, is_ready):
        end = time.monotonic() + seconds
        while not is_ready():
            if not self.runs(name):
                raise Problem(f"{name} has ended; the end of its log:\n{self._end_of_log(name)}")
            if time.monotonic() > end:
                raise Problem(f"{name} is not ready after {seconds} s; the end of its log:\n{self._end_of_log(name)}")
            time.sleep(GLANCE)

    def stop(self, names, seconds=15):
        """Ends all of them and what they have started: asks first. Children may outlive who has started them."""
        groups = {self._process(name) for name in names} - {None}
        for group in groups:
            _signal(group, signal.SIGTERM)
        end = time.monotonic() + seconds
        while (groups := groups & _groups()) and time.monotonic() < end:
            time.sleep(GLANCE)
        for group in groups:
            _signal(group, signal.SIGKILL)
        for name in names:
            self._file(name).unlink(missing_ok=True)

    def _process(self, name):
        try:
            process, started = self._file(name).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(process) if _start_of(int(process)) == started else None

    def _file(self, name):
        return self.layout.run / f"{name}.pid"

    def _log(self, name):
        return self.layout.log / f"{name}.log"

    def _end_of_log(self, name):
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-30:])


def answers(port):
    """Whether something listens."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def serves(url):
    """Whether an HTTP server answers, with anything but a failure of its own."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=20):
            return True
    except urllib.error.HTTPError as answer:
        return answer.code < 500
    except OSError:
        return False


def _signal(group, what):
    try:
        os.killpg(group, what)
    except ProcessLookupError:
        pass


def _groups():
    """Process groups in which something runs."""
    stats = (_stat_of(file.name) for file in pathlib.Path("/proc").iterdir() if file.name.isdecimal())
    return {int(fields[2]) for fields in stats if fields}


def _start_of(process):
    """Clock ticks since the machine's start; None for a process that is not there or is a zombie."""
    fields = _stat_of(process)
    return fields[19] if fields else None


def _stat_of(process):
    """What follows its name in `stat`; None for a process that is not there or is a zombie."""
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields
