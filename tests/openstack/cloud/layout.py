"""Where things are: files, ports, the data base's socket."""
import hashlib
import json
import pathlib
import socket
import tempfile

# In the order of their ports.
LISTENERS = ("keystone", "glance", "placement", "neutron", "nova-api", "cinder-api", "octavia-api", "rabbit",
             "rabbit-distribution", "epmd")
# Below the range from which Linux takes ports for outgoing connections.
PORT_RANGES = range(29000, 31000, 20)
# Linux refuses longer paths of sockets.
LONGEST_SOCKET = 100
HERE = pathlib.Path(__file__).resolve().parents[1]


class Layout:
    """Names everything below one folder."""

    secret = "secret"
    region = "RegionOne"
    zones = ("az1", "az2", "az3")
    # Every build on its host fails.
    failing_zone = "az-fail"
    drivers = HERE / "drivers"
    requirements = HERE / "requirements.lock"

    def __init__(self, folder):
        self.folder = folder
        self.venv = folder / "venv"
        self.etc = folder / "etc"
        self.run = folder / "run"
        self.log = folder / "log"
        self.var = folder / "var"
        self.clouds = folder / "clouds.yaml"
        self.admin = self.etc / "admin.yaml"
        self._state = folder / "state.json"
        sockets = self.run
        if len(str(sockets / "mariadb.sock")) > LONGEST_SOCKET:
            digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
            sockets = pathlib.Path(tempfile.gettempdir()) / f"capwasm-openstack-{digest}"
        self.sockets = sockets
        self.socket = sockets / "mariadb.sock"
        self.northbound = sockets / "ovn-nb.sock"

    def make(self):
        for folder in (self.etc, self.run, self.log, self.var):
            folder.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(mode=0o700, exist_ok=True)

    def bin(self, program):
        return str(self.venv / "bin" / program)

    @property
    def stamp(self):
        """Changes when other versions are wanted."""
        return hashlib.sha256(self.requirements.read_bytes()).hexdigest()[:16]

    # Ports are chosen when a stack starts from nothing, and stay until it is down.
    @property
    def base_port(self):
        return self._read().get("base_port", PORT_RANGES[0])

    def choose_ports(self):
        for base in PORT_RANGES:
            if all(_is_free(base + index) for index in range(len(LISTENERS))):
                self._state.write_text(json.dumps({"base_port": base}))
                return

    def _read(self):
        try:
            return json.loads(self._state.read_text())
        except FileNotFoundError:
            return {}

    def port(self, listener):
        return self.base_port + LISTENERS.index(listener)

    def url(self, listener, path=""):
        return f"http://127.0.0.1:{self.port(listener)}{path}"

    @property
    def bus(self):
        return f"rabbit://guest:guest@127.0.0.1:{self.port('rabbit')}/"

    @property
    def auth_url(self):
        return self.url("keystone", "/v3")


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
