//! Claims of a pool, and the addresses that answer them.

use capwasm_sdk::object;
use serde_json::{Value, json};

use super::{KIND, names};
use crate::kinds::{ADDRESS_FINALIZER, GROUP};

/// What there is of a pool in its namespace.
pub struct Known {
    claims: Vec<Value>,
    pub addresses: Vec<Value>,
}

/// An IPAddress that comes to its end.
pub enum Going<'a> {
    Unclaimed(&'a Value),
    Deleting(&'a Value),
}

impl Known {
    /// Of all claims and addresses of a namespace those that are the pool's, in the order of their names.
    pub fn of(pool: &str, claims: Vec<Value>, addresses: Vec<Value>) -> Known {
        let ours = |mut all: Vec<Value>| {
            all.retain(|it| it.pointer("/spec/poolRef").is_some_and(|reference| names(reference, pool)));
            all.sort_by(|one, other| object::name(one).cmp(object::name(other)));
            all
        };
        Known { claims: ours(claims), addresses: ours(addresses) }
    }

    /// Addresses that are in use.
    pub fn claimed(&self) -> impl Iterator<Item = String> + '_ {
        let stay = self.addresses.iter().filter(|address| !object::is_deleting(address));
        stay.map(|address| object::text(address, "/spec/address").to_owned())
    }

    /// Whether there is an IPAddress of that name already; one that goes has to go first.
    pub fn has_address(&self, name: &str) -> bool {
        self.addresses.iter().any(|address| object::name(address) == name && !object::is_deleting(address))
    }

    /// Claims that name no address yet. One whose old address is still going waits for that.
    pub fn unanswered(&self) -> impl Iterator<Item = &Value> + '_ {
        let goes = |name: &str| self.addresses.iter().any(|it| object::name(it) == name && object::is_deleting(it));
        self.claims.iter().filter(move |claim| {
            !object::is_deleting(claim)
                && object::text(claim, "/status/addressRef/name").is_empty()
                && !goes(object::name(claim))
        })
    }

    /// Addresses that nobody has any more.
    pub fn going(&self) -> impl Iterator<Item = Going<'_>> + '_ {
        self.addresses.iter().filter_map(|address| {
            if object::is_deleting(address) {
                return Some(Going::Deleting(address));
            }
            let claim = object::text(address, "/spec/claimRef/name");
            let is_claimed = self.claims.iter().any(|known| object::name(known) == claim);
            (!is_claimed).then_some(Going::Unclaimed(address))
        })
    }
}

/// The IPAddress that answers a claim.
pub fn address(claim: &Value, pool: &str, address: &str) -> Value {
    let name = object::name(claim);
    let version = object::text(claim, "/apiVersion");
    let cluster = object::label(claim, crate::kinds::CLUSTER_NAME_LABEL);
    let mut answer = json!({
        "apiVersion": version,
        "kind": "IPAddress",
        "metadata": {
            "name": name,
            "finalizers": [ADDRESS_FINALIZER],
            "ownerReferences": [{
                "apiVersion": version,
                "kind": "IPAddressClaim",
                "name": name,
                "uid": object::uid(claim),
                "controller": true,
            }],
        },
        "spec": {
            "claimRef": {"name": name},
            "poolRef": {"apiGroup": GROUP, "kind": KIND, "name": pool},
            "address": address,
            "prefix": if address.contains(':') { 128 } else { 32 },
        },
    });
    if let Some(cluster) = cluster {
        let labels = json!({"metadata": {"labels": {crate::kinds::CLUSTER_NAME_LABEL: cluster}}});
        object::merge(&mut answer, &labels);
    }
    answer
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn claim(name: &str, pool: &str, address: &str) -> Value {
        json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "metadata": {"name": name, "uid": format!("u-{name}")},
            "spec": {"poolRef": {"apiGroup": GROUP, "kind": KIND, "name": pool}}, "status": {"addressRef": {"name": address}},
        })
    }

    fn deleting(mut object: Value) -> Value {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        object
    }

    #[test]
    fn only_claims_of_the_pool_without_an_address_are_answered() {
        let mut foreign = claim("f", "p", "");
        foreign["spec"]["poolRef"]["apiGroup"] = "example.org".into();
        let claims = vec![
            claim("b", "p", ""),
            claim("a", "p", ""),
            claim("c", "p", "c"),
            claim("d", "q", ""),
            foreign,
            deleting(claim("e", "p", "")),
        ];
        let known = Known::of("p", claims, Vec::new());
        let names: Vec<&str> = known.unanswered().map(object::name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn an_address_without_its_claim_goes_and_one_that_goes_holds_its_name() {
        let claims = vec![claim("a", "p", "a"), claim("b", "p", "")];
        let of = |name: &str, ip: &str| address(&claim(name, "p", ""), "p", ip);
        let known =
            Known::of("p", claims, vec![of("a", "1.1.1.1"), deleting(of("b", "1.1.1.2")), of("gone", "1.1.1.3")]);
        let going: Vec<(&str, bool)> = known
            .going()
            .map(|going| match going {
                Going::Unclaimed(address) => (object::name(address), false),
                Going::Deleting(address) => (object::name(address), true),
            })
            .collect();
        assert_eq!(going, [("b", true), ("gone", false)]);
        assert_eq!(known.claimed().collect::<Vec<_>>(), ["1.1.1.1", "1.1.1.3"]);
        assert_eq!(known.unanswered().count(), 0, "the new claim waits until the old address is gone");
    }

    #[test]
    fn an_answer_belongs_to_its_claim() {
        let answer = address(&claim("a", "p", ""), "p", "203.0.113.7");
        assert_eq!(answer["metadata"]["ownerReferences"][0]["uid"], "u-a");
        assert_eq!(
            answer["spec"],
            json!({"claimRef": {"name": "a"}, "poolRef": {"apiGroup": GROUP, "kind": KIND, "name": "p"}, "address": "203.0.113.7", "prefix": 32})
        );
        assert_eq!(address(&claim("a", "p", ""), "p", "fd00::1")["spec"]["prefix"], 128);
    }
}
