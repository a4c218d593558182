//! Converts between generated types and those of the contract crate, which the rest of this crate uses.

use std::time::Duration;

use capwasm_contract::{
    Address, Algorithm, Answer, BootstrapData, ClusterAnswer, ControlPlaneAnswer, Endpoint, EtcdMember, FailureDomain,
    Fault, MachineAnswer, ObjectRef, Pair, Place, PoolAnswer, Problem, Refusal, Refused, Subject,
};

use super::exports::{
    bootstrap, control_plane, infrastructure_cluster, infrastructure_machine, infrastructure_machine_pool,
};
use super::{etcd, http, pki, types};
use crate::http::HttpResponse;

// ---- what a guest asks ----

impl From<types::ObjectRef> for ObjectRef {
    fn from(target: types::ObjectRef) -> Self {
        let types::ObjectRef { api_version, kind, namespace, name } = target;
        ObjectRef { api_version, kind, namespace, name }
    }
}

impl From<types::Place> for Place {
    fn from(place: types::Place) -> Self {
        match place {
            types::Place::Management => Place::Management,
            types::Place::Workload => Place::Workload,
        }
    }
}

impl From<pki::Algorithm> for Algorithm {
    fn from(algorithm: pki::Algorithm) -> Self {
        match algorithm {
            pki::Algorithm::EcdsaP256 => Algorithm::EcdsaP256,
            pki::Algorithm::EcdsaP384 => Algorithm::EcdsaP384,
            pki::Algorithm::Rsa2048 => Algorithm::Rsa2048,
            pki::Algorithm::Rsa3072 => Algorithm::Rsa3072,
            pki::Algorithm::Rsa4096 => Algorithm::Rsa4096,
            pki::Algorithm::Ed25519 => Algorithm::Ed25519,
        }
    }
}

impl From<pki::Pair> for Pair {
    fn from(pair: pki::Pair) -> Self {
        Pair { certificate_pem: pair.certificate_pem, key_pem: pair.key_pem }
    }
}

impl From<pki::Subject> for Subject {
    fn from(subject: pki::Subject) -> Self {
        let pki::Subject { common_name, organizations, dns_names, ip_addresses } = subject;
        Subject { common_name, organizations, dns_names, ip_addresses }
    }
}

// ---- what it is told ----

impl From<Refusal> for types::Refusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::NotFound,
            Refusal::Conflict => Self::Conflict,
            Refusal::AlreadyExists => Self::AlreadyExists,
            Refusal::Invalid => Self::Invalid,
            Refusal::Denied => Self::Denied,
            Refusal::Limit => Self::Limit,
            Refusal::Unavailable => Self::Unavailable,
            Refusal::Unsupported => Self::Unsupported,
        }
    }
}

impl From<Refused> for types::CallError {
    fn from(refused: Refused) -> Self {
        types::CallError { refusal: refused.refusal.into(), reason: refused.reason, message: refused.message }
    }
}

impl From<EtcdMember> for etcd::Member {
    fn from(member: EtcdMember) -> Self {
        let EtcdMember { id, name, peer_urls, learner, leader, healthy, message, alarms } = member;
        etcd::Member { id, name, peer_urls, learner, leader, healthy, message, alarms }
    }
}

impl From<Pair> for pki::Pair {
    fn from(pair: Pair) -> Self {
        pki::Pair { certificate_pem: pair.certificate_pem, key_pem: pair.key_pem }
    }
}

impl From<HttpResponse> for http::Response {
    fn from(response: HttpResponse) -> Self {
        http::Response { status: response.status, headers: response.headers, body: response.body.to_vec() }
    }
}

// ---- what it answers ----

impl From<types::Endpoint> for Endpoint {
    fn from(endpoint: types::Endpoint) -> Self {
        Endpoint { host: endpoint.host, port: endpoint.port }
    }
}

impl From<types::FailureDomain> for FailureDomain {
    fn from(domain: types::FailureDomain) -> Self {
        let types::FailureDomain { name, control_plane, attributes } = domain;
        FailureDomain { name, control_plane, attributes }
    }
}

impl From<types::Address> for Address {
    fn from(address: types::Address) -> Self {
        Address { kind: address.kind.into(), value: address.value }
    }
}

impl From<infrastructure_cluster::Cluster> for Answer {
    fn from(cluster: infrastructure_cluster::Cluster) -> Self {
        Answer::Cluster(ClusterAnswer {
            provisioned: cluster.provisioned,
            endpoint: cluster.endpoint.map(Endpoint::from),
            failure_domains: cluster.failure_domains.into_iter().map(FailureDomain::from).collect(),
        })
    }
}

impl From<infrastructure_machine::Machine> for Answer {
    fn from(machine: infrastructure_machine::Machine) -> Self {
        Answer::Machine(MachineAnswer {
            provisioned: machine.provisioned,
            provider_id: machine.provider_id,
            addresses: machine.addresses.into_iter().map(Address::from).collect(),
            failure_domain: machine.failure_domain,
        })
    }
}

impl From<infrastructure_machine_pool::Pool> for Answer {
    fn from(pool: infrastructure_machine_pool::Pool) -> Self {
        let infrastructure_machine_pool::Pool { provisioned, provider_ids, replicas } = pool;
        Answer::Pool(PoolAnswer { provisioned, provider_ids, replicas })
    }
}

impl From<bootstrap::BootstrapData> for BootstrapData {
    fn from(data: bootstrap::BootstrapData) -> Self {
        BootstrapData { format: data.format.into(), value: data.value }
    }
}

impl From<control_plane::State> for Answer {
    fn from(state: control_plane::State) -> Self {
        Answer::ControlPlane(ControlPlaneAnswer {
            initialized: state.initialized,
            endpoint: state.endpoint.map(Endpoint::from),
            version: state.version,
            replicas: state.replicas,
            ready: state.ready,
            available: state.available,
            up_to_date: state.up_to_date,
            selector: state.selector,
        })
    }
}

impl From<types::Problem> for Problem {
    fn from(problem: types::Problem) -> Self {
        Problem {
            fault: match problem.fault {
                types::Fault::Waiting => Fault::Waiting,
                types::Fault::Transient => Fault::Transient,
                types::Fault::Invalid => Fault::Invalid,
                types::Fault::Terminal => Fault::Terminal,
                types::Fault::Unsupported => Fault::Unsupported,
            },
            reason: problem.reason,
            message: problem.message,
            retry_after: problem.retry_after_ms.map(Duration::from_millis),
        }
    }
}
