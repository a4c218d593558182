//! One project of an OpenStack cloud in one region: Keystone's token, its catalog, and requests to the services in it.

mod failure;
mod query;

pub use failure::Failure;
pub use query::{Query, encode};

use capwasm_sdk::{Host, Problem};
use serde_json::Value;

use crate::identity::IdentityRef;

/// The services that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Glance.
    Image,
    /// Octavia.
    LoadBalancer,
    /// Cinder.
    Volume,
}

/// How a deletion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The service accepted it, and may still be at it.
    Now,
    /// There was nothing.
    Already,
}

/// A project in a region, with a token.
pub struct Cloud<'a> {
    host: &'a dyn Host,
}

impl<'a> Cloud<'a> {
    /// Reads the identity's Secret and gets a token; a recent one will do. `namespace` is that of the object.
    ///
    /// # Errors
    /// Waiting or invalid, with the reason for the condition `OpenStackAuthenticationSucceeded`.
    pub fn connect(host: &'a dyn Host, namespace: &str, identity: &IdentityRef) -> Result<Cloud<'a>, Problem> {
        let _ = (host, namespace, identity);
        Err(Problem::unsupported("NotImplemented", "no cloud is connected to yet"))
    }

    /// The region.
    pub fn region(&self) -> &str {
        ""
    }

    /// The token's project.
    pub fn project_id(&self) -> String {
        String::new()
    }

    /// Whether the catalog has the service in this region.
    pub fn offers(&self, service: Service) -> bool {
        let _ = service;
        false
    }

    /// `path` below the service's versioned root: `/servers/ID`, `/networks?name=x`, `/lbaas/loadbalancers`.
    pub fn get(&self, service: Service, path: &str) -> Result<Value, Failure> {
        self.send("GET", service, path, None)
    }

    /// As [`Cloud::get`]; none for 404.
    pub fn find(&self, service: Service, path: &str) -> Result<Option<Value>, Failure> {
        match self.get(service, path) {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// All pages of a collection; `key` is the list's name in the answer.
    pub fn list(&self, service: Service, path: &str, key: &str, query: &Query) -> Result<Vec<Value>, Failure> {
        let mut answer = self.get(service, &query.after(path))?;
        Ok(match answer.get_mut(key).map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        })
    }

    /// Creates, or acts; `Null` where the service answers nothing.
    pub fn post(&self, service: Service, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("POST", service, path, Some(body))
    }

    /// Replaces or changes.
    pub fn put(&self, service: Service, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("PUT", service, path, Some(body))
    }

    /// Deletes; what is gone already is a success.
    pub fn delete(&self, service: Service, path: &str) -> Result<Gone, Failure> {
        match self.send("DELETE", service, path, None) {
            Ok(_) => Ok(Gone::Now),
            Err(failure) if failure.is_not_found() => Ok(Gone::Already),
            Err(failure) => Err(failure),
        }
    }

    /// From now on asks Nova for at least this microversion (`2.53`, `2.60`); 2.38 without it.
    ///
    /// # Errors
    /// Also when Nova does not go that far.
    pub fn with_compute_microversion(&self, minimum: &str) -> Result<(), Failure> {
        let _ = minimum;
        Ok(())
    }

    /// Whether Octavia's API is at least this version: `2.12`.
    pub fn load_balancer_api_at_least(&self, version: &str) -> Result<bool, Failure> {
        let _ = version;
        Ok(false)
    }

    /// Whether Neutron has an extension; a recent answer will do.
    pub fn network_extension(&self, alias: &str) -> Result<bool, Failure> {
        let _ = alias;
        Ok(false)
    }

    fn send(&self, method: &str, service: Service, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let _ = (self.host, method, service, path, body);
        Err(Failure {
            status: None,
            reason: "NotImplemented".to_owned(),
            message: "no request is sent yet".to_owned(),
            retry_after: None,
            fault: capwasm_sdk::Fault::Unsupported,
        })
    }
}
