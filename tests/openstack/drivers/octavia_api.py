"""Octavia's API with OVN's provider: what surrounds that provider in a cloud is done in this process.

Octavia's driver agent takes what a provider reports; Neutron makes a logical switch of each network.
"""
from octavia.api.drivers.driver_agent import driver_get, driver_updater
from octavia_lib.api.drivers import driver_lib
from ovn_octavia_provider import helper
from ovn_octavia_provider.common import utils


class Reports(driver_lib.DriverLibrary):
    """Without the sockets behind which the agent is."""

    def __init__(self):
        self.status_socket, self.stats_socket, self.get_socket = "status", "stats", "get"

    def _send(self, socket_path, data):
        if socket_path == self.get_socket:
            return driver_get.process_get(data)
        updater = driver_updater.DriverUpdater()
        update = updater.update_loadbalancer_status if socket_path == self.status_socket \
            else updater.update_listener_statistics
        return update(data)


class Balancers(helper.OvnProviderHelper):
    def lb_create(self, loadbalancer, protocol=None):
        switch = utils.ovn_name(loadbalancer["vip_network_id"])
        self.ovn_nbdb_api.ls_add(switch, may_exist=True).execute(check_error=True)
        return super().lb_create(loadbalancer, protocol)


driver_lib.DriverLibrary = Reports
helper.OvnProviderHelper = Balancers

# Only now: it loads the provider.
from octavia.wsgi.api import application  # noqa: E402, F401
