//! Between the generated types and those of the contract crate, for what a component asks and answers.

use std::time::Duration;

use capwasm_contract::{
    Address, Algorithm, BootstrapData, ClusterAnswer, ControlPlaneAnswer, Endpoint, EtcdMember, FailureDomain, Fault,
    HttpResponse, MachineAnswer, ObjectRef, Pair, Place, PoolAnswer, Problem, Refusal, Refused, Subject,
};

use super::bindings::imported::{etcd, http, pki, types};
use super::bindings::{
    bootstrap, control_plane, infrastructure_cluster, infrastructure_machine, infrastructure_machine_pool,
};

/// Whole milliseconds, the contract's unit.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

// ---- what a provider asks ----

impl From<&ObjectRef> for types::ObjectRef {
    fn from(target: &ObjectRef) -> Self {
        let ObjectRef { api_version, kind, namespace, name } = target.clone();
        types::ObjectRef { api_version, kind, namespace, name }
    }
}

impl From<Place> for types::Place {
    fn from(place: Place) -> Self {
        match place {
            Place::Management => types::Place::Management,
            Place::Workload => types::Place::Workload,
        }
    }
}

impl From<Algorithm> for pki::Algorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::EcdsaP256 => pki::Algorithm::EcdsaP256,
            Algorithm::EcdsaP384 => pki::Algorithm::EcdsaP384,
            Algorithm::Rsa2048 => pki::Algorithm::Rsa2048,
            Algorithm::Rsa3072 => pki::Algorithm::Rsa3072,
            Algorithm::Rsa4096 => pki::Algorithm::Rsa4096,
            Algorithm::Ed25519 => pki::Algorithm::Ed25519,
        }
    }
}

impl From<&Pair> for pki::Pair {
    fn from(pair: &Pair) -> Self {
        pki::Pair { certificate_pem: pair.certificate_pem.clone(), key_pem: pair.key_pem.clone() }
    }
}

impl From<&Subject> for pki::Subject {
    fn from(subject: &Subject) -> Self {
        let Subject { common_name, organizations, dns_names, ip_addresses } = subject.clone();
        pki::Subject { common_name, organizations, dns_names, ip_addresses }
    }
}

// ---- what it is told ----

impl From<types::CallError> for Refused {
    fn from(error: types::CallError) -> Self {
        let refusal = match error.refusal {
            types::Refusal::NotFound => Refusal::NotFound,
            types::Refusal::Conflict => Refusal::Conflict,
            types::Refusal::AlreadyExists => Refusal::AlreadyExists,
            types::Refusal::Invalid => Refusal::Invalid,
            types::Refusal::Denied => Refusal::Denied,
            types::Refusal::Limit => Refusal::Limit,
            types::Refusal::Unavailable => Refusal::Unavailable,
            types::Refusal::Unsupported => Refusal::Unsupported,
        };
        Refused { refusal, reason: error.reason, message: error.message }
    }
}

impl From<etcd::Member> for EtcdMember {
    fn from(member: etcd::Member) -> Self {
        let etcd::Member { id, name, peer_urls, learner, leader, healthy, message, alarms } = member;
        EtcdMember { id, name, peer_urls, learner, leader, healthy, message, alarms }
    }
}

impl From<pki::Pair> for Pair {
    fn from(pair: pki::Pair) -> Self {
        Pair { certificate_pem: pair.certificate_pem, key_pem: pair.key_pem }
    }
}

impl From<http::Response> for HttpResponse {
    fn from(response: http::Response) -> Self {
        HttpResponse { status: response.status, headers: response.headers, body: response.body }
    }
}

// ---- what it answers ----

impl From<Problem> for types::Problem {
    fn from(problem: Problem) -> Self {
        types::Problem {
            fault: match problem.fault {
                Fault::Waiting => types::Fault::Waiting,
                Fault::Transient => types::Fault::Transient,
                Fault::Invalid => types::Fault::Invalid,
                Fault::Terminal => types::Fault::Terminal,
                Fault::Unsupported => types::Fault::Unsupported,
            },
            reason: problem.reason,
            message: problem.message,
            retry_after_ms: problem.retry_after.map(millis),
        }
    }
}

impl From<Endpoint> for types::Endpoint {
    fn from(endpoint: Endpoint) -> Self {
        types::Endpoint { host: endpoint.host, port: endpoint.port }
    }
}

impl From<FailureDomain> for types::FailureDomain {
    fn from(domain: FailureDomain) -> Self {
        let FailureDomain { name, control_plane, attributes } = domain;
        types::FailureDomain { name, control_plane, attributes }
    }
}

impl From<Address> for types::Address {
    fn from(address: Address) -> Self {
        types::Address { kind: address.kind.into(), value: address.value }
    }
}

impl From<ClusterAnswer> for infrastructure_cluster::Cluster {
    fn from(answer: ClusterAnswer) -> Self {
        infrastructure_cluster::Cluster {
            provisioned: answer.provisioned,
            endpoint: answer.endpoint.map(Into::into),
            failure_domains: answer.failure_domains.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<MachineAnswer> for infrastructure_machine::Machine {
    fn from(answer: MachineAnswer) -> Self {
        infrastructure_machine::Machine {
            provisioned: answer.provisioned,
            provider_id: answer.provider_id,
            addresses: answer.addresses.into_iter().map(Into::into).collect(),
            failure_domain: answer.failure_domain,
        }
    }
}

impl From<PoolAnswer> for infrastructure_machine_pool::Pool {
    fn from(answer: PoolAnswer) -> Self {
        let PoolAnswer { provisioned, provider_ids, replicas } = answer;
        infrastructure_machine_pool::Pool { provisioned, provider_ids, replicas }
    }
}

impl From<BootstrapData> for bootstrap::BootstrapData {
    fn from(data: BootstrapData) -> Self {
        bootstrap::BootstrapData { format: data.format.into(), value: data.value }
    }
}

impl From<ControlPlaneAnswer> for control_plane::State {
    fn from(answer: ControlPlaneAnswer) -> Self {
        control_plane::State {
            initialized: answer.initialized,
            endpoint: answer.endpoint.map(Into::into),
            version: answer.version,
            replicas: answer.replicas,
            ready: answer.ready,
            available: answer.available,
            up_to_date: answer.up_to_date,
            selector: answer.selector,
        }
    }
}
