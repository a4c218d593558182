"""Up and down: the daemons in the order in which they need each other."""
import os
import shutil
import subprocess

from cloud import config, install as packages
from cloud.daemons import Daemons, answers, serves
from cloud.database import Database
from cloud.problem import Problem
from cloud.say import say

# Stopped after all others.
LAST = ("rabbit", "mariadb", "epmd")
# As the provider's own tests have it; Debian's package of it would start a server.
NORTHBOUND_SCHEMA = "lib/python3*/site-packages/ovn_octavia_provider/tests/unit/schemas/ovn-nb.ovsschema"
# On eventlet's threads an answer over the bus takes half a second.
NATIVE_THREADS = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"}


def up(layout, may_install, debug):
    """Everything runs and is filled. On a running stack: what has ended is started again."""
    daemons = _ready_to_start(layout, may_install, debug)
    bus_and_database(layout, daemons)
    keystone(layout, daemons)
    services(layout, daemons)
    fill(layout, daemons)
    for name in daemons.names():
        if not daemons.runs(name):
            raise Problem(f"{name} has ended; see {layout.log}/{name}.log")
    say("ready")


def down(layout, purge):
    daemons = Daemons(layout, {})
    names = daemons.names()
    daemons.stop([name for name in names if name not in LAST])
    for name in (name for name in LAST if name in names):
        daemons.stop([name])
    if purge:
        shutil.rmtree(layout.folder, ignore_errors=True)
        shutil.rmtree(layout.sockets, ignore_errors=True)
    say(f"{len(names)} daemons are stopped")


def status(layout):
    daemons = Daemons(layout, {})
    names = daemons.names()
    for name in names:
        print(f"{name:16} {'runs' if daemons.runs(name) else 'HAS ENDED'}")
    return bool(names) and all(daemons.runs(name) for name in names)


def _ready_to_start(layout, may_install, debug):
    layout.make()
    if not packages.is_complete(layout):
        if not may_install:
            raise Problem("something is not installed, and --no-install is given")
        packages.install(layout)
    if not _running(Daemons(layout, {})):
        # A start from nothing begins with empty services.
        for stale in layout.run.glob("*.pid"):
            stale.unlink()
        for state in ("rabbit", "glance", *config.computes(layout)):
            shutil.rmtree(layout.var / state, ignore_errors=True)
        for log in layout.log.glob("*.log"):
            if log.stem not in ("apt", "pip"):
                log.unlink()
        layout.clouds.unlink(missing_ok=True)
        layout.choose_ports()
    config.write(layout, debug)
    # Only now: ports are in it.
    return Daemons(layout, environment(layout))


def _running(daemons):
    return any(daemons.runs(name) for name in daemons.names())


def environment(layout):
    # What a user has set for clients must not reach the services.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
    return kept | {
        "PYTHONPATH": str(layout.drivers), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore",
        "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": str(layout.var / "cache"),
        "no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost",
        "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(layout.port("epmd")),
        **{f"OS_{service.upper()}_CONFIG_DIR": str(layout.etc / service)
           for service in ("keystone", "glance", "placement", "nova", "neutron")},
    }


def bus_and_database(layout, daemons):
    database = Database(layout, daemons)
    fresh = not _running(daemons)
    rabbit = layout.var / "rabbit"
    for folder in ("home", "mnesia", "log"):
        (rabbit / folder).mkdir(parents=True, exist_ok=True)
    daemons.start("epmd", ["epmd"], layout.port("epmd"))
    daemons.wait("epmd", 20, lambda: answers(layout.port("epmd")))
    daemons.start("rabbit", [str(packages.RABBIT)], layout.port("rabbit"), {
        "HOME": str(rabbit / "home"), "RABBITMQ_NODENAME": f"capwasm{layout.port('rabbit')}@localhost",
        "RABBITMQ_DIST_PORT": str(layout.port("rabbit-distribution")),
        "RABBITMQ_CONFIG_FILE": str(layout.etc / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(layout.etc / "rabbitmq-plugins"),
        "RABBITMQ_MNESIA_BASE": str(rabbit / "mnesia"), "RABBITMQ_LOG_BASE": str(rabbit / "log"),
        "RABBITMQ_LOGS": "-", "RABBITMQ_PID_FILE": str(layout.run / "rabbit.id"),
        # One scheduler that sleeps, and no listener but on loopback.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none "
                                               "-kernel inet_dist_use_interface {127,0,0,1}",
    })
    if fresh:
        database.start_empty()
    else:
        database.start()
    say("the data base runs")


def keystone(layout, daemons):
    _serve(layout, daemons, "keystone", "keystone.wsgi.api", threads=8)
    _serve(layout, daemons, "placement", "placement.wsgi.api", threads=4)
    daemons.wait("keystone", 120, lambda: serves(layout.auth_url))
    _seed(layout, daemons, "identity")
    say("Keystone runs")


def services(layout, daemons):
    of, etc = layout.bin, layout.etc
    nova, cinder, octavia = (["--config-file", f"{etc}/{service}/{service}.conf"]
                             for service in ("nova", "cinder", "octavia"))
    daemons.wait("rabbit", 60, lambda: answers(layout.port("rabbit")))
    _serve(layout, daemons, "glance", "glance.wsgi.api", threads=4)
    _serve(layout, daemons, "neutron", "neutron.wsgi.api", threads=8)
    daemons.start("nova-conductor", [of("nova-conductor")] + nova, extra=NATIVE_THREADS)
    daemons.start("nova-scheduler", [of("nova-scheduler")] + nova)
    _serve(layout, daemons, "nova-api", "nova.wsgi.osapi_compute", threads=8)
    _serve(layout, daemons, "cinder-api", "cinder.wsgi.api", threads=4, arguments=cinder)
    daemons.start("cinder-scheduler", [of("cinder-scheduler")] + cinder)
    for name in ("placement", "glance", "neutron", "nova-api"):
        daemons.wait(name, 180, lambda name=name: serves(layout.url(name, "/")))
    for host in config.computes(layout):
        daemons.start(f"nova-{host}", [of("nova-compute"), "--config-file", f"{etc}/nova/{host}.conf"],
                      extra=NATIVE_THREADS)
    northbound(layout, daemons)
    _serve(layout, daemons, "octavia-api", "octavia_api", threads=4, arguments=octavia)
    daemons.start("octavia-worker", [of("octavia-worker")] + octavia)
    for name in ("octavia-api", "cinder-api"):
        daemons.wait(name, 120, lambda name=name: serves(layout.url(name, "/")))
    # It reports to the scheduler once; before that one listens, nobody hears.
    daemons.start("cinder-volume", [of("cinder-volume")] + cinder)
    say("all services answer")


def northbound(layout, daemons):
    """OVN's northbound data base, where its provider writes load balancers. Empty after a start."""
    if daemons.runs("ovn-northbound"):
        return
    data, schema = layout.var / "ovn-nb.db", next(layout.venv.glob(NORTHBOUND_SCHEMA))
    data.unlink(missing_ok=True)
    made = subprocess.run(["ovsdb-tool", "create", str(data), str(schema)], capture_output=True, text=True)
    if made.returncode != 0:
        raise Problem(f"ovsdb-tool makes no data base: {made.stderr}")
    daemons.start("ovn-northbound", ["ovsdb-server", f"--remote=punix:{layout.northbound}", "--no-chdir",
                                     f"--unixctl={layout.sockets / 'ovn-nb.ctl'}", str(data)])
    daemons.wait("ovn-northbound", 20, layout.northbound.exists)


def fill(layout, daemons):
    hosts = [f"{host}={zone}" for host, zone in config.computes(layout).items()]
    _seed(layout, daemons, "computes", *hosts)
    log = layout.log / "discover-hosts.log"
    with open(log, "ab") as output:
        # By service: a compute that has not yet written its node would stay unmapped.
        command = [layout.bin("nova-manage"), "--config-file", f"{layout.etc}/nova/nova.conf", "cell_v2", "discover_hosts",
                   "--by-service"]
        if subprocess.run(command, env=daemons.environment, stdout=output, stderr=output).returncode != 0:
            raise Problem(f"nova-manage cell_v2 discover_hosts failed; see {log}")
    _seed(layout, daemons, "cloud", str(layout.clouds), layout.auth_url, *hosts)


def _serve(layout, daemons, name, module, threads, arguments=()):
    command = [layout.bin("python"), "-m", "serve", module, str(layout.port(name)), str(threads), *arguments]
    daemons.start(name, command, layout.port(name))


def _seed(layout, daemons, step, *arguments):
    login = {"auth_url": layout.auth_url, "username": "admin", "password": layout.secret, "project_name": "admin",
             "user_domain_id": "default", "project_domain_id": "default"}
    lines = ["clouds:", "  admin:", f"    region_name: {layout.region}", "    auth:"]
    layout.admin.write_text("\n".join(lines + [f"      {key}: {value}" for key, value in login.items()]) + "\n")
    layout.admin.chmod(0o600)
    catalog = [layout.url(name) for name in ("glance", "placement", "nova-api", "neutron", "cinder-api", "octavia-api")]
    given = catalog if step == "identity" else arguments
    command = [layout.bin("python"), str(layout.drivers.parent / "cloud" / "seed.py"), str(layout.admin), layout.secret,
               step, *given]
    done = subprocess.run(command, env=daemons.environment, text=True, capture_output=True)
    if done.returncode != 0:
        raise Problem(f"the step {step!r} of filling the services failed:\n{done.stdout}{done.stderr}")
