"""Octavia's amphorae, without servers: their ports are real ones of Neutron, marked as Nova would mark them."""
import collections
import uuid

from octavia.common import clients, constants, data_models
from octavia.compute import compute_base

HOST = "amphorae"
Group = collections.namedtuple("Group", "id")
Interface = collections.namedtuple("Interface", "net_id port_id fixed_ips")


class Nowhere(compute_base.ComputeBase):
    @property
    def _network(self):
        return clients.NeutronAuth.get_neutron_client().network

    def build(self, *arguments, **named):
        return str(uuid.uuid4())

    def delete(self, compute_id):
        for port in self._network.ports(device_id=compute_id):
            self._network.delete_port(port.id, ignore_missing=True)

    def status(self, compute_id):
        return constants.UP

    def get_amphora(self, compute_id, management_network_id=None):
        return data_models.Amphora(compute_id=compute_id, status=constants.ACTIVE, lb_network_ip="192.0.2.1"), None

    def attach_network_or_port(self, compute_id, network_id=None, ip_address=None, port_id=None):
        if port_id is None:
            wanted = {"network_id": network_id}
            if ip_address:
                wanted["fixed_ips"] = [{"ip_address": ip_address}]
            port_id = self._network.create_port(**wanted).id
        port = self._network.update_port(port_id, device_id=compute_id, binding_host_id=HOST)
        return Interface(port.network_id, port.id, port.fixed_ips)

    def detach_port(self, compute_id, port_id):
        self._network.update_port(port_id, device_id="", binding_host_id="")

    def create_server_group(self, name, policy):
        return Group(str(uuid.uuid4()))

    def delete_server_group(self, server_group_id):
        return None

    def validate_flavor(self, flavor_id):
        return None

    def validate_availability_zone(self, availability_zone):
        return None
