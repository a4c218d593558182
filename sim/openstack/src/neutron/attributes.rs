//! The kinds of Neutron's resources and their attributes: which may be given, of which type, and by whom.

use serde_json::{Map, Value};

use super::{bad_request, forbidden, refused};
use crate::answer::Answer;
use crate::cloud::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Network,
    Subnet,
    Port,
    Router,
    SecurityGroup,
    SecurityGroupRule,
    FloatingIp,
    Trunk,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Truth,
    Number,
    List,
    /// Looked at by the kind itself.
    Any,
}

/// An attribute: name, type, and when it may be given: `c` at creation, `u` at an update, `a` by administrators only, `h` shown
/// to administrators only.
type Attribute = (&'static str, Type, &'static str);

const COMMON: [Attribute; 10] = [
    ("name", Type::Text, "cu"),
    ("description", Type::Text, "cu"),
    ("project_id", Type::Any, "c"),
    ("tenant_id", Type::Any, "c"),
    ("id", Type::Any, ""),
    ("status", Type::Any, ""),
    ("created_at", Type::Any, ""),
    ("updated_at", Type::Any, ""),
    ("revision_number", Type::Any, ""),
    ("tags", Type::Any, ""),
];

const NETWORK: [Attribute; 19] = [
    ("admin_state_up", Type::Truth, "cu"),
    ("mtu", Type::Number, "cu"),
    ("shared", Type::Truth, "cua"),
    ("port_security_enabled", Type::Truth, "cu"),
    ("router:external", Type::Truth, "cua"),
    ("provider:network_type", Type::Any, "cah"),
    ("provider:physical_network", Type::Any, "cah"),
    ("provider:segmentation_id", Type::Any, "cah"),
    ("availability_zone_hints", Type::List, "c"),
    ("availability_zones", Type::Any, ""),
    ("dns_domain", Type::Text, "cu"),
    ("qos_policy_id", Type::Any, "cu"),
    ("vlan_transparent", Type::Any, "c"),
    ("qinq", Type::Any, "c"),
    ("is_default", Type::Truth, "cua"),
    ("subnets", Type::Any, ""),
    ("ipv4_address_scope", Type::Any, ""),
    ("ipv6_address_scope", Type::Any, ""),
    ("segments", Type::Any, "ca"),
];

const SUBNET: [Attribute; 14] = [
    ("network_id", Type::Text, "c"),
    ("ip_version", Type::Number, "c"),
    ("cidr", Type::Text, "c"),
    ("gateway_ip", Type::Any, "cu"),
    ("allocation_pools", Type::List, "cu"),
    ("dns_nameservers", Type::List, "cu"),
    ("host_routes", Type::List, "cu"),
    ("enable_dhcp", Type::Truth, "cu"),
    ("ipv6_ra_mode", Type::Any, "c"),
    ("ipv6_address_mode", Type::Any, "c"),
    ("subnetpool_id", Type::Any, "c"),
    ("service_types", Type::List, "cu"),
    ("router:external", Type::Any, ""),
    ("segment_id", Type::Any, "ca"),
];

const PORT: [Attribute; 25] = [
    ("tags", Type::List, "c"),
    ("network_id", Type::Text, "c"),
    ("admin_state_up", Type::Truth, "cu"),
    ("mac_address", Type::Any, "c"),
    ("fixed_ips", Type::List, "cu"),
    ("security_groups", Type::List, "cu"),
    ("port_security_enabled", Type::Truth, "cu"),
    ("allowed_address_pairs", Type::List, "cu"),
    ("device_id", Type::Text, "cu"),
    ("device_owner", Type::Text, "cu"),
    ("binding:vnic_type", Type::Text, "cu"),
    ("binding:host_id", Type::Any, "cuah"),
    ("binding:profile", Type::Any, "cuah"),
    ("binding:vif_type", Type::Any, "h"),
    ("binding:vif_details", Type::Any, "h"),
    ("resource_request", Type::Any, "h"),
    ("propagate_uplink_status", Type::Truth, "c"),
    ("extra_dhcp_opts", Type::Any, "cu"),
    ("dns_name", Type::Text, "cu"),
    ("dns_assignment", Type::Any, ""),
    ("qos_policy_id", Type::Any, "cu"),
    ("qos_network_policy_id", Type::Any, ""),
    ("numa_affinity_policy", Type::Any, "cuah"),
    ("device_profile", Type::Any, "cah"),
    ("hints", Type::Any, "cuah"),
];

const ROUTER: [Attribute; 9] = [
    ("admin_state_up", Type::Truth, "cu"),
    ("external_gateway_info", Type::Any, "cu"),
    ("routes", Type::List, "u"),
    ("distributed", Type::Any, "cuah"),
    ("ha", Type::Any, "cuah"),
    ("availability_zone_hints", Type::List, "c"),
    ("availability_zones", Type::Any, ""),
    ("flavor_id", Type::Any, "c"),
    ("enable_ndp_proxy", Type::Any, "cu"),
];

const GROUP: [Attribute; 3] =
    [("stateful", Type::Truth, "cu"), ("shared", Type::Any, ""), ("security_group_rules", Type::Any, "")];

const RULE: [Attribute; 11] = [
    ("security_group_id", Type::Text, "c"),
    ("direction", Type::Text, "c"),
    ("ethertype", Type::Any, "c"),
    ("protocol", Type::Any, "c"),
    ("port_range_min", Type::Any, "c"),
    ("port_range_max", Type::Any, "c"),
    ("remote_ip_prefix", Type::Any, "c"),
    ("remote_group_id", Type::Any, "c"),
    ("remote_address_group_id", Type::Any, "c"),
    ("normalized_cidr", Type::Any, ""),
    ("belongs_to_default_sg", Type::Any, ""),
];

const FLOATING: [Attribute; 11] = [
    ("floating_network_id", Type::Text, "c"),
    ("floating_ip_address", Type::Any, "ca"),
    ("port_id", Type::Any, "cu"),
    ("fixed_ip_address", Type::Any, "cu"),
    ("subnet_id", Type::Any, "c"),
    ("router_id", Type::Any, ""),
    ("qos_policy_id", Type::Any, "cu"),
    ("dns_domain", Type::Text, "c"),
    ("dns_name", Type::Text, "c"),
    ("port_details", Type::Any, ""),
    ("port_forwardings", Type::Any, ""),
];

const TRUNK: [Attribute; 3] =
    [("port_id", Type::Text, "c"), ("sub_ports", Type::List, "c"), ("admin_state_up", Type::Truth, "cu")];

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::Network,
        Kind::Subnet,
        Kind::Port,
        Kind::Router,
        Kind::FloatingIp,
        Kind::SecurityGroup,
        Kind::SecurityGroupRule,
        Kind::Trunk,
    ];

    /// The kind of a collection in a path.
    pub fn of(path: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.plural() == path.replace('-', "_"))
    }

    pub fn singular(self) -> &'static str {
        match self {
            Kind::Network => "network",
            Kind::Subnet => "subnet",
            Kind::Port => "port",
            Kind::Router => "router",
            Kind::SecurityGroup => "security_group",
            Kind::SecurityGroupRule => "security_group_rule",
            Kind::FloatingIp => "floatingip",
            Kind::Trunk => "trunk",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Kind::Network => "networks",
            Kind::Subnet => "subnets",
            Kind::Port => "ports",
            Kind::Router => "routers",
            Kind::SecurityGroup => "security_groups",
            Kind::SecurityGroupRule => "security_group_rules",
            Kind::FloatingIp => "floatingips",
            Kind::Trunk => "trunks",
        }
    }

    pub fn quota(self) -> &'static str {
        self.singular()
    }

    /// Says that there is none of this id.
    pub fn missing(self, id: &str) -> Answer {
        let (kind, message) = match self {
            Kind::Network => ("NetworkNotFound", format!("Network {id} could not be found.")),
            Kind::Subnet => ("SubnetNotFound", format!("Subnet {id} could not be found.")),
            Kind::Port => ("PortNotFound", format!("Port {id} could not be found.")),
            Kind::Router => ("RouterNotFound", format!("Router {id} could not be found")),
            Kind::SecurityGroup => ("SecurityGroupNotFound", format!("Security group {id} does not exist")),
            Kind::SecurityGroupRule => {
                ("SecurityGroupRuleNotFound", format!("Security group rule {id} does not exist"))
            }
            Kind::FloatingIp => ("FloatingIPNotFound", format!("Floating IP {id} could not be found")),
            Kind::Trunk => ("TrunkNotFound", format!("Trunk {id} could not be found.")),
        };
        refused(404, kind, &message)
    }

    fn attribute(self, name: &str) -> Option<Attribute> {
        let own: &[Attribute] = match self {
            Kind::Network => &NETWORK,
            Kind::Subnet => &SUBNET,
            Kind::Port => &PORT,
            Kind::Router => &ROUTER,
            Kind::SecurityGroup => &GROUP,
            Kind::SecurityGroupRule => &RULE,
            Kind::FloatingIp => &FLOATING,
            Kind::Trunk => &TRUNK,
        };
        own.iter().chain(&COMMON).find(|(known, ..)| *known == name).copied()
    }

    /// Whether it has an attribute.
    pub fn has(self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// Whether an attribute is shown to administrators only.
    pub fn is_hidden(self, name: &str) -> bool {
        self.attribute(name).is_some_and(|(_, _, when)| when.contains('h'))
    }
}

/// What was given, once it is known that this may be given.
pub(super) fn checked(
    kind: Kind,
    given: Map<String, Value>,
    method: &str,
    scope: &Scope,
) -> Result<Map<String, Value>, Answer> {
    let unknown: Vec<String> = given.keys().filter(|name| !kind.has(name)).map(|name| format!("'{name}'")).collect();
    if !unknown.is_empty() {
        return Err(bad_request(&format!("Unrecognized attribute(s) {}", unknown.join(", "))));
    }
    let (phase, act) = if method == "POST" { ('c', "create") } else { ('u', "update") };
    for (name, value) in &given {
        let Some((_, expected, when)) = kind.attribute(name) else { continue };
        if !when.contains(phase) {
            let verb = if method == "POST" { "POST".to_owned() } else { "PUT".to_owned() };
            return Err(bad_request(&format!("Attribute '{name}' not allowed in {verb}")));
        }
        if when.contains('a') && !scope.admin {
            return Err(forbidden(act, kind, Some(name)));
        }
        let fits = match expected {
            Type::Text => value.is_string(),
            Type::Truth => value.is_boolean() || matches!(value.as_str(), Some("true" | "false" | "True" | "False")),
            Type::Number => value.is_u64() || value.as_str().is_some_and(|text| text.parse::<u64>().is_ok()),
            Type::List => value.is_array(),
            Type::Any => true,
        };
        if !fits {
            let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let reason = match expected {
                Type::Text => format!("'{plain}' is not a valid string."),
                Type::Truth => format!("'{plain}' cannot be converted to boolean."),
                Type::Number => format!("'{plain}' is not an integer."),
                Type::List | Type::Any => format!("'{plain}' is not a list."),
            };
            return Err(bad_request(&format!("Invalid input for {name}. Reason: {reason}")));
        }
    }
    Ok(given)
}

/// An attribute that must be given.
pub(super) fn required<'a>(given: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Answer> {
    let missing = || bad_request(&format!("Failed to parse request. Required attribute '{name}' not specified"));
    given.get(name).filter(|value| !value.is_null()).ok_or_else(missing)
}
