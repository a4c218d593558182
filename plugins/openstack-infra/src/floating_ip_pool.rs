//! OpenStackFloatingIPPool: floating addresses for IPAddressClaims.
//!
//! An IPAddress says who has which address; the status only repeats it. A floating IP that the pool made is found again by its
//! description, which no other pool's has, so that none is made twice and none is left over.

mod claims;

use std::collections::BTreeSet;

use capwasm_sdk::{Context, Host, ObjectRef, Place, Problem, Selection, object};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Query};
use crate::identity::connect;
use crate::kinds::{ADDRESS_FINALIZER, GROUP, IPAM_GROUP, POOL_READY};
use crate::network::{self, FloatingIp, Network};
use crate::param::Param;
use crate::server::floating::{by_address, without_finalizer};
use claims::{Going, Known};

/// Kind of the pool, as claims name it.
const KIND: &str = "OpenStackFloatingIPPool";
/// In front of the namespace and name of the pool that a floating IP was made by.
const MADE_BY: &str = "Created by cluster-api-provider-openstack floating IP pool ";
/// The condition's reasons where it does not hold.
const MAX_IPS_REACHED: &str = "MaxIPsReached";
const NO_NETWORK: &str = "UnableToFindNetwork";
const OPENSTACK_ERROR: &str = "OpenStackError";

/// `spec`, as far as it is read here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PoolSpec {
    #[serde(rename = "preAllocatedFloatingIPs")]
    pre_allocated: Vec<String>,
    #[serde(rename = "maxIPs")]
    max_ips: Option<usize>,
    #[serde(rename = "floatingIPNetwork")]
    network: Value,
    reclaim_policy: String,
}

/// One pass over an OpenStackFloatingIPPool.
struct Pool<'a> {
    object: &'a Value,
    spec: PoolSpec,
}

impl<'a> Pool<'a> {
    fn read(object: &'a Value) -> Result<Pool<'a>, Problem> {
        Ok(Pool { object, spec: object::spec(object)? })
    }

    fn name(&self) -> &'a str {
        object::name(self.object)
    }

    /// Of every floating IP that it makes.
    fn description(&self) -> String {
        let (namespace, name) = (object::namespace(self.object), self.name());
        format!("{MADE_BY}{namespace}/{name}")
    }

    /// Upstream's mark on what its pools made: pools of other namespaces may have it too.
    fn tag(&self) -> String {
        format!("cluster-api-provider-openstack-fip-pool-{}", self.name())
    }

    fn is_pre_allocated(&self, address: &str) -> bool {
        self.spec.pre_allocated.iter().any(|known| known == address)
    }

    /// Whether the pool made it, and may delete it.
    fn is_own(&self, floating: &FloatingIp) -> bool {
        let is_upstreams = !floating.description.starts_with(MADE_BY) && floating.tags.contains(&self.tag());
        !self.is_pre_allocated(&floating.floating_ip_address)
            && (floating.description == self.description() || is_upstreams)
    }

    /// All that it made, whoever has it now.
    fn own(&self, cloud: &Cloud<'_>) -> Result<Vec<FloatingIp>, Problem> {
        let of_project = || Query::new().with("project_id", cloud.project_id());
        let mut found = network::list::<FloatingIp>(cloud, &of_project().with("description", self.description()))?;
        for tagged in network::list::<FloatingIp>(cloud, &of_project().with("tags", self.tag()))? {
            if !found.iter().any(|known| known.id == tagged.id) {
                found.push(tagged);
            }
        }
        found.retain(|floating| self.is_own(floating));
        Ok(found)
    }

    fn known(&self, host: &dyn Host) -> Result<Known, Problem> {
        let version = format!("{IPAM_GROUP}/");
        // Read: the pool wakes for each claim and address of its namespace.
        let claims = host.lookup_list(&Selection::of(&version, "IPAddressClaim"))?;
        let addresses = host.lookup_list(&Selection::of(&version, "IPAddress"))?;
        Ok(Known::of(self.name(), claims, addresses))
    }
}

/// Takes back addresses that nobody claims any more, and gives one to each claim without an address.
pub fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
    let pool = Pool::read(object)?;
    let cloud = connect(cx, object)?;
    let known = pool.known(cx.host)?;
    let mut lists = Lists::read(&pool, &known);
    give_back(cx, &cloud, &pool, &known, &mut lists)?;
    let result = answer(cx, &cloud, &pool, &known, &mut lists);
    cx.out.status(lists.status());
    match &result {
        Ok(()) => cx.out.condition(POOL_READY, Some(true), "Ready", ""),
        Err(problem) => {
            let reason = match problem.reason.as_str() {
                reason @ (MAX_IPS_REACHED | NO_NETWORK) => reason,
                _ => OPENSTACK_ERROR,
            };
            cx.out.condition(POOL_READY, Some(false), reason, problem.message.clone())
        }
    };
    result
}

/// Deletes the floating IPs that it made; true when nothing is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let pool = Pool::read(object)?;
    let cloud = connect(cx, object)?;
    let known = pool.known(cx.host)?;
    let mut lists = Lists::read(&pool, &known);
    give_back(cx, &cloud, &pool, &known, &mut lists)?;
    cx.out.status(lists.status());
    if !known.addresses.is_empty() {
        let message = format!("{} addresses of the pool are still claimed or being given back", known.addresses.len());
        return Err(Problem::waiting("WaitingForIPAddresses", message));
    }
    for floating in pool.own(&cloud)? {
        network::delete::<FloatingIp>(&cloud, &floating.id)?;
        cx.out.event("SuccessfulDeleteFloatingIP", format!("Deleted floating IP {}", floating.floating_ip_address));
    }
    Ok(true)
}

/// The lists of the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lists {
    claimed: BTreeSet<String>,
    available: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Lists {
    /// Who has what is told by the IPAddresses; what is free, by the status and the spec.
    fn read(pool: &Pool<'_>, known: &Known) -> Lists {
        let list = |field: &str| -> BTreeSet<String> {
            let items = pool.object.pointer(&format!("/status/{field}")).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let claimed: BTreeSet<String> = known.claimed().collect();
        let failed = list("failedIPs");
        let available = list("availableIPs").into_iter().chain(pool.spec.pre_allocated.iter().cloned());
        let available = available.filter(|address| !claimed.contains(address) && !failed.contains(address)).collect();
        Lists { claimed, available, failed }
    }

    fn claim(&mut self, address: &str) {
        self.available.remove(address);
        self.claimed.insert(address.to_owned());
    }

    fn status(&self) -> Value {
        let mut status = json!({"claimedIPs": self.claimed, "availableIPs": self.available});
        if !self.failed.is_empty() {
            status["failedIPs"] = json!(self.failed);
        }
        status
    }
}

/// Takes back addresses that nobody claims any more.
fn give_back(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    pool: &Pool<'_>,
    known: &Known,
    lists: &mut Lists,
) -> Result<(), Problem> {
    for going in known.going() {
        let (found, is_deleting) = match going {
            Going::Unclaimed(found) => (found, false),
            Going::Deleting(found) => (found, true),
        };
        let target = reference("IPAddress", object::name(found));
        let key = format!("return-{}", object::name(found));
        if !is_deleting {
            cx.out.delete(key, Place::Management, target, Some(object::uid(found).to_owned()));
            continue;
        }
        let Some(patch) = without_finalizer(found, ADDRESS_FINALIZER) else { continue };
        let address = object::text(found, "/spec/address");
        if pool.spec.reclaim_policy == "Delete" && !pool.is_pre_allocated(address) {
            // Somebody else may have got the address since an earlier pass.
            if let Some(floating) = by_address(cloud, address)?.filter(|floating| pool.is_own(floating)) {
                network::delete::<FloatingIp>(cloud, &floating.id)?;
                cx.out.event("SuccessfulDeleteFloatingIP", format!("Deleted floating IP {address}"));
            }
            lists.available.remove(address);
        } else {
            lists.available.insert(address.to_owned());
        }
        cx.out.patch(key, Place::Management, target, patch);
    }
    Ok(())
}

/// Answers the claims that have no address.
fn answer(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    pool: &Pool<'_>,
    known: &Known,
    lists: &mut Lists,
) -> Result<(), Problem> {
    let network = external_network(cx, cloud, pool)?;
    let mut has_looked = false;
    for claim in known.unanswered() {
        let name = object::name(claim);
        if !known.has_address(name) {
            if lists.available.is_empty() && !std::mem::replace(&mut has_looked, true) {
                // What an earlier pass made, or took back, and did not write down.
                let own = pool.own(cloud)?.into_iter().map(|floating| floating.floating_ip_address);
                let free = own.filter(|it| !lists.claimed.contains(it) && !lists.failed.contains(it));
                lists.available = free.collect();
            }
            let address = match free(cloud, lists)? {
                Some(address) => address,
                None => make(cx, cloud, pool, &network, lists)?,
            };
            lists.claim(&address);
            cx.out.create(format!("address-{name}"), Place::Management, claims::address(claim, pool.name(), &address));
        }
        let patch = json!({"status": {"addressRef": {"name": name}}});
        cx.out.patch(format!("claim-{name}"), Place::Management, reference("IPAddressClaim", name), patch);
    }
    Ok(())
}

/// An address that the pool has and OpenStack knows.
fn free(cloud: &Cloud<'_>, lists: &mut Lists) -> Result<Option<String>, Problem> {
    while let Some(address) = lists.available.first().cloned() {
        if by_address(cloud, &address)?.is_some() {
            return Ok(Some(address));
        }
        lists.available.remove(&address);
        lists.failed.insert(address);
    }
    Ok(None)
}

fn make(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    pool: &Pool<'_>,
    network: &str,
    lists: &Lists,
) -> Result<String, Problem> {
    if pool.spec.max_ips.is_some_and(|most| lists.claimed.len() >= most) {
        let message = "Maximum number of IPs reached, we will not allocate more IPs for this pool";
        return Err(Problem::waiting(MAX_IPS_REACHED, message));
    }
    let fields = json!({"floating_network_id": network, "description": pool.description()});
    let floating = network::create::<FloatingIp>(cloud, fields)?;
    network::set_tags::<FloatingIp>(cloud, &floating.id, &[pool.tag()])?;
    let address = floating.floating_ip_address;
    cx.out.event("SuccessfulCreateFloatingIP", format!("Created floating IP {address}"));
    Ok(address)
}

/// Where the pool's addresses come from: the network that the spec means, or the only external one.
fn external_network(cx: &mut Context<'_>, cloud: &Cloud<'_>, pool: &Pool<'_>) -> Result<String, Problem> {
    let known = object::text(pool.object, "/status/floatingIPNetwork/id");
    if !known.is_empty() {
        return Ok(known.to_owned());
    }
    let external = Query::new().with("router:external", "true");
    let found = match Param::read(&pool.spec.network, "spec.floatingIPNetwork")? {
        Some(param) => network::one::<Network>(cloud, &param, &external).map_err(|problem| {
            // A service that does not answer says nothing about the network.
            let is_about_it = problem.reason.starts_with("FilterMatches");
            if is_about_it { Problem { reason: NO_NETWORK.to_owned(), ..problem } } else { problem }
        })?,
        None => {
            let mut all = network::list::<Network>(cloud, &external)?;
            let count = all.len();
            all.pop().filter(|_| count == 1).ok_or_else(|| {
                let message = format!("there are {count} external networks; name one in spec.floatingIPNetwork");
                Problem::invalid(NO_NETWORK, message)
            })?
        }
    };
    let status = json!({"id": found.id, "name": found.name, "tags": found.tags});
    cx.out.status(json!({"floatingIPNetwork": status}));
    Ok(found.id)
}

fn reference(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::new(format!("{IPAM_GROUP}/"), kind, name)
}

/// Whether a reference of a claim or address means a pool of that name.
fn names(reference: &Value, pool: &str) -> bool {
    let text = |at: &str| object::text(reference, at);
    text("/kind") == KIND && text("/name") == pool && ["", GROUP].contains(&text("/apiGroup"))
}
