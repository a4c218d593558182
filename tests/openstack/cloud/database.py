"""MariaDB on a unix socket, and the services' schemas, of which a copy is kept for later starts."""
import concurrent.futures
import getpass
import os
import shutil
import subprocess
import time

from cloud.problem import Problem
from cloud.say import say

NAMES = ("keystone", "glance", "placement", "nova_api", "nova", "nova_cell0", "neutron", "cinder", "octavia")


class Database:
    def __init__(self, layout, daemons):
        self.layout = layout
        self.daemons = daemons
        self.data = layout.var / "mariadb"
        self.schemas = layout.var / f"schemas-{layout.stamp}"

    def start(self):
        self.daemons.start("mariadb", ["mariadbd", f"--defaults-file={self.layout.etc / 'mariadb.cnf'}"])
        self.daemons.wait("mariadb", 60, lambda: self._sql("SELECT 1").returncode == 0)

    def start_empty(self):
        """With schemas and nothing else in it."""
        if not self.schemas.exists():
            self._make_schemas()
        shutil.rmtree(self.data, ignore_errors=True)
        _copy(self.schemas, self.data)
        self.start()
        # The copy has the ports and the path of the start that made it.
        moved = self._sql(f"UPDATE keystone.endpoint SET url = '{self.layout.auth_url}';"
                          f"UPDATE nova_api.cell_mappings SET transport_url = '{self.layout.bus}' WHERE name = 'cell1';"
                          "UPDATE nova_api.cell_mappings SET database_connection = REGEXP_REPLACE("
                          f"database_connection, 'unix_socket=[^&]*', 'unix_socket={self.layout.socket}');")
        if moved.returncode != 0:
            raise Problem(f"the schemas do not take this start's ports: {moved.stderr}")

    def _make_schemas(self):
        say("data base schemas (once)")
        for stale in self.layout.var.glob("schemas-*"):
            shutil.rmtree(stale)
        shutil.rmtree(self.data, ignore_errors=True)
        log = self.layout.log / "mariadb-install.log"
        with open(log, "wb") as output:
            made = subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self.data}",
                 "--skip-test-db", "--auth-root-authentication-method=normal"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if made.returncode != 0:
            raise Problem(f"mariadb-install-db failed; see {log}")
        self.start()
        statements = "".join(f"CREATE DATABASE {name} CHARACTER SET utf8mb3;" for name in NAMES)
        created = self._sql(statements)
        if created.returncode != 0:
            raise Problem(f"the data bases cannot be made: {created.stderr}")
        for keys in ("fernet-keys", "credential-keys"):
            shutil.rmtree(self.layout.etc / "keystone" / keys, ignore_errors=True)
        # The longest first; more than two at a time only compete.
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            for job in [pool.submit(self._migrate, name, steps) for name, steps in self._migrations().items()]:
                job.result()
        self.daemons.stop(["mariadb"])
        part = self.schemas.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        _copy(self.data, part)
        part.rename(self.schemas)

    def _migrations(self):
        etc, of = self.layout.etc, self.layout.bin
        owner = ["--keystone-user", getpass.getuser(), "--keystone-group", _group()]
        keystone = [of("keystone-manage"), "--config-file", f"{etc}/keystone/keystone.conf"]
        nova = [of("nova-manage"), "--config-file", f"{etc}/nova/nova.conf"]
        urls = [part for interface in ("public", "internal", "admin")
                for part in (f"--bootstrap-{interface}-url", self.layout.auth_url)]
        return {
            "neutron": [[of("neutron-db-manage"), "--config-file", f"{etc}/neutron/neutron.conf", "--config-file",
                         f"{etc}/neutron/plugins/ml2/ml2_conf.ini", "upgrade", "heads"]],
            "nova": [nova + ["api_db", "sync"], nova + ["cell_v2", "map_cell0"], nova + ["db", "sync"],
                     nova + ["cell_v2", "create_cell", "--name", "cell1"]],
            "keystone": [keystone + ["db_sync"], keystone + ["fernet_setup"] + owner,
                         keystone + ["credential_setup"] + owner,
                         keystone + ["bootstrap", "--bootstrap-password", self.layout.secret,
                                     "--bootstrap-region-id", self.layout.region] + urls],
            "glance": [[of("glance-manage"), "--config-file", f"{etc}/glance/glance-api.conf", "db_sync"]],
            "placement": [[of("placement-manage"), "--config-file", f"{etc}/placement/placement.conf", "db", "sync"]],
            "cinder": [[of("cinder-manage"), "--config-file", f"{etc}/cinder/cinder.conf", "db", "sync"]],
            "octavia": [[of("octavia-db-manage"), "--config-file", f"{etc}/octavia/octavia.conf", "upgrade", "head"]],
        }

    def _migrate(self, name, steps):
        log, started = self.layout.log / f"schema-{name}.log", time.monotonic()
        with open(log, "wb") as output:
            for step in steps:
                done = subprocess.run(step, env=self.daemons.environment, stdin=subprocess.DEVNULL, stdout=output,
                                      stderr=output)
                if done.returncode != 0:
                    raise Problem(f"`{' '.join(step)}` failed; see {log}")
        say(f"  {name}: {time.monotonic() - started:.0f} s")

    def _sql(self, statements):
        return subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", str(self.layout.socket)], input=statements,
                              text=True, capture_output=True)


def _copy(source, target):
    # Keeps owners and holes.
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _group():
    import grp
    return grp.getgrgid(os.getegid()).gr_name
