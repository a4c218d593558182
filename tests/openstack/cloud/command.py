"""The command line."""
import argparse
import pathlib
import sys

from cloud import install, life
from cloud.layout import Layout
from cloud.problem import Problem

DEFAULT = pathlib.Path(__file__).resolve().parents[3] / "target" / "openstack"


def main():
    parser = argparse.ArgumentParser(prog="stack", description="Real OpenStack services on loopback.")
    parser.add_argument("--folder", type=pathlib.Path, default=DEFAULT,
                        help="where everything that it writes goes (default: target/openstack)")
    actions = parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up", help="install what is missing, start what does not run, fill it; print the path of clouds.yaml")
    up.add_argument("--no-install", action="store_true", help="fail where something is missing")
    up.add_argument("--debug", action="store_true", help="debug lines in the logs of services that are started")
    actions.add_parser("packages", help="install the Debian packages that are missing")
    down = actions.add_parser("down", help="stop what `up` has started")
    down.add_argument("--purge", action="store_true", help="remove the folder as well")
    actions.add_parser("status", help="list the daemons; exit with 1 when one does not run")
    options = parser.parse_args()
    layout = Layout(options.folder.resolve())
    try:
        if options.action == "up":
            life.up(layout, may_install=not options.no_install, debug=options.debug)
            print(layout.clouds)
        elif options.action == "packages":
            layout.make()
            install.debian(layout)
        elif options.action == "down":
            life.down(layout, options.purge)
        else:
            sys.exit(0 if life.status(layout) else 1)
    except Problem as problem:
        sys.exit(f"stack: {problem}")
