"""Neutron without agents: a mechanism driver that does at once what they would do after a while."""
from neutron.services.trunk.drivers import base as trunks
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugins, directory
from neutron_lib.plugins.ml2 import api

ROUTER_HOST = "routers"
ROUTER_PORTS = (constants.DEVICE_OWNER_ROUTER_INTF, constants.DEVICE_OWNER_ROUTER_GW)
WRITES = [events.AFTER_CREATE, events.AFTER_UPDATE]


class Trunks(trunks.DriverBase):
    """There is nothing to wire, but without a driver the trunk plugin does not load."""

    is_loaded = True


@registry.has_registry_receivers
class Agentless(api.MechanismDriver):
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        self._trunks = Trunks("agentless", (portbindings.VIF_TYPE_OVS,), ("vlan",), can_trunk_bound_port=True)

    def bind_port(self, context):
        """Any port with a host, on its first segment."""
        segment = context.segments_to_bind[0][api.ID]
        details = {portbindings.CAP_PORT_FILTER: True}
        context.set_binding(segment, portbindings.VIF_TYPE_OVS, details, status=constants.PORT_STATUS_ACTIVE)

    def filter_hosts_with_segment_access(self, context, segments, candidate_hosts, agent_getter):
        return set(candidate_hosts)

    @registry.receives(resources.PORT, WRITES)
    def _router_port_gets_a_host(self, resource, event, trigger, payload):
        port = payload.latest_state
        if port.get("device_owner") in ROUTER_PORTS and not port.get(portbindings.HOST_ID):
            change = {"port": {portbindings.HOST_ID: ROUTER_HOST}}
            directory.get_plugin().update_port(payload.context.elevated(), port["id"], change)

    @registry.receives(resources.FLOATING_IP, WRITES)
    def _floating_ip_follows_its_port(self, resource, event, trigger, payload):
        routers, context = directory.get_plugin(plugins.L3), payload.context.elevated()
        address = routers.get_floatingip(context, payload.resource_id)
        wanted = constants.FLOATINGIP_STATUS_ACTIVE if address["port_id"] else constants.FLOATINGIP_STATUS_DOWN
        if address["status"] != wanted:
            routers.update_floatingip_status(context, address["id"], wanted)
