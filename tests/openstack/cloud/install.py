"""Debian packages and the virtual environment."""
import os
import pathlib
import shutil
import subprocess
import sys

from cloud.problem import Problem
from cloud.say import say

RABBIT = pathlib.Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# Debian asks this program before a package may start a server.
POLICY = pathlib.Path("/usr/sbin/policy-rc.d")


def missing_packages():
    packages = []
    if not shutil.which("mariadbd"):
        packages += ["mariadb-server-core", "mariadb-client-core"]
    if not RABBIT.exists():
        packages.append("rabbitmq-server")
    packages += [package for program, package in (("openssl", "openssl"), ("ovsdb-server", "openvswitch-common"))
                 if not shutil.which(program)]
    return packages


def is_complete(layout):
    return not missing_packages() and _is_current(layout)


def debian(layout):
    packages = missing_packages()
    if packages:
        say("Debian packages: " + " ".join(packages))
        _debian(packages, layout.log / "apt.log")


def install(layout):
    debian(layout)
    if not _is_current(layout):
        say("Python packages")
        _venv(layout)


def _is_current(layout):
    stamp = layout.venv / "stamp"
    return stamp.exists() and stamp.read_text() == layout.stamp


def _debian(packages, log):
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Problem("these Debian packages are missing, and only root may install them: " + " ".join(packages))
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *packages]
    try:
        if not _logged(command, log, environment):
            _logged(["apt-get", "update", "-q"], log, environment)
            if not _logged(command, log, environment):
                raise Problem(f"apt-get failed; see {log}")
    finally:
        if ours:
            POLICY.unlink()


def _venv(layout):
    log = layout.log / "pip.log"
    shutil.rmtree(layout.venv, ignore_errors=True)
    steps = (
        [sys.executable, "-m", "venv", str(layout.venv)],
        [layout.bin("pip"), "install", "-q", "uv"],
        [layout.bin("uv"), "pip", "install", "-q", "--no-cache", "--compile-bytecode", "--python", layout.bin("python"),
         "-r", str(layout.requirements)],
    )
    for step in steps:
        if not _logged(step, log, dict(os.environ)):
            raise Problem(f"`{' '.join(step)}` failed; see {log}")
    (layout.venv / "stamp").write_text(layout.stamp)


def _logged(command, log, environment):
    with open(log, "ab") as output:
        output.write(("+ " + " ".join(command) + "\n").encode())
        output.flush()
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                              env=environment).returncode == 0
