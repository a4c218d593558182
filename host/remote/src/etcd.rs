//! Membership of a workload cluster's etcd.
//!
//! Members are the pods that kubeadm makes of etcd's static manifest (`etcd-<node>` in `kube-system`), reached by port-forward;
//! the client certificate is signed here, with the cluster's etcd authority out of the Secret `<cluster>-etcd`.
//!
//! - [`authority`]: the certificate, and how long it is used;
//! - [`connections`]: one to each member, kept while it is used;
//! - [`members`]: what the members say, made one list.

pub(crate) mod authority;
pub(crate) mod connections;
mod members;

use std::{fmt::Write as _, future::Future, sync::Arc, time::Duration};

use capwasm_contract::EtcdMember;
use capwasm_etcd::{Client, Code, Error};
use capwasm_object::meta;
use capwasm_reconcile::{CacheError, Kind, Selector};
use futures::{StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use tokio::time::Instant;

use self::{
    connections::Connections,
    members::{Asked, Report},
};
use crate::{Workload, explain};

/// Timeout of a request to all members.
const PATIENCE: Duration = Duration::from_secs(12);
/// Timeout of the remaining members once most have answered: a dead one must not delay the others.
const GRACE: Duration = Duration::from_secs(2);

/// Members through which a removal is tried: each may take long to report that there is no majority.
const ATTEMPTS: usize = 2;

/// Why a request to etcd failed.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// etcd is external, or managed by somebody else.
    #[error("{0}")]
    Unsupported(String),
    /// There is no Secret `<cluster>-etcd`.
    #[error("there is no Secret {0}, which holds the authority of the cluster's etcd")]
    NoAuthority(String),
    /// The authority in the Secret cannot sign.
    #[error("{0}")]
    BadAuthority(String),
    /// The workload cluster or its etcd is unreachable at present.
    #[error("{0}")]
    Unavailable(String),
    /// There is no member with this id.
    #[error("etcd has no member {0:x}")]
    NoMember(u64),
    /// etcd refused the request.
    #[error("etcd refuses: {0}")]
    Refused(String),
}

impl From<CacheError> for EtcdError {
    fn from(error: CacheError) -> Self {
        Self::Unavailable(explain(&error))
    }
}

/// Membership of one workload cluster's etcd.
#[derive(Clone)]
pub struct Etcd(Workload);

/// A pod of etcd, which should be a member.
#[derive(Clone, Debug)]
pub(crate) struct MemberPod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: String,
}

/// Answer of a pod's member, with the connection.
struct Reply {
    asked: Asked,
    client: Option<Client>,
}

impl Etcd {
    pub(crate) fn new(workload: Workload) -> Self {
        Self(workload)
    }

    /// The members, with the status that each reports itself.
    ///
    /// # Errors
    /// When none answers, or there is no way to ask.
    pub async fn members(&self) -> Result<Vec<EtcdMember>, EtcdError> {
        let mut replies = self.ask_all().await?;
        // They answer at different moments: a change of the membership in between is no disagreement. One that lasts is.
        if members::disagree(replies.iter().map(|reply| &reply.asked)) {
            replies = self.ask_all().await?;
        }
        Self::agreed(&replies)
    }

    /// Removes a member through another one. A missing one is a success.
    ///
    /// # Errors
    /// When no other member answers, or a majority does not agree.
    pub async fn remove(&self, id: u64) -> Result<(), EtcdError> {
        let replies = self.ask_all().await?;
        let members = Self::agreed(&replies)?;
        // Whether it is still a member etcd itself decides: what members know without asking each other may be old. The
        // leader first, as it need not pass the request on, then the healthy ones.
        let mut others: Vec<&EtcdMember> = members.iter().filter(|member| member.id != id && !member.learner).collect();
        others.sort_by_key(|member| (!member.leader, !member.healthy));
        let mut said = "no other member can be asked".to_owned();
        let ways = others.into_iter().filter_map(|member| Self::way_to(&replies, member.id));
        for (pod, client) in ways.take(ATTEMPTS) {
            match self.fenced(client.member_remove(id)).await? {
                Ok(_) => return Ok(()),
                Err(error) if error.code() == Code::NotFound => return Ok(()),
                Err(error) => said = self.failed(pod, error)?,
            }
        }
        Err(EtcdError::Unavailable(format!("member {id:x} was not removed: {said}")))
    }

    /// Makes `to` the leader. Also a success if it is already.
    ///
    /// # Errors
    /// When the leader cannot be asked or refuses, or there is no such member.
    pub async fn move_leader(&self, to: u64) -> Result<(), EtcdError> {
        let replies = self.ask_all().await?;
        let members = Self::agreed(&replies)?;
        if !members.iter().any(|member| member.id == to) {
            return Err(EtcdError::NoMember(to));
        }
        let leader = members.iter().find(|member| member.leader);
        let leader = leader.ok_or_else(|| EtcdError::Unavailable("etcd has no leader".to_owned()))?;
        if leader.id == to {
            return Ok(());
        }
        let unreachable = || EtcdError::Unavailable(format!("{}, which leads, cannot be asked", leader.name));
        let (pod, client) = Self::way_to(&replies, leader.id).ok_or_else(unreachable)?;
        match self.fenced(client.move_leader(to)).await? {
            Ok(_) => Ok(()),
            Err(error) => Err(EtcdError::Unavailable(self.failed(pod, error)?)),
        }
    }

    /// A change of the membership, which only the holder of the Lease may ask for.
    async fn fenced<T>(&self, change: impl Future<Output = T>) -> Result<T, EtcdError> {
        self.0.0.etcd.fence.guard(change).await.map_err(|down| EtcdError::Unavailable(down.to_string()))
    }

    fn agreed(replies: &[Reply]) -> Result<Vec<EtcdMember>, EtcdError> {
        let asked: Vec<&Asked> = replies.iter().map(|reply| &reply.asked).collect();
        let silent = |asked: &[&Asked]| {
            let mut text = "no member of etcd answers".to_owned();
            for asked in asked {
                if let Err(message) = &asked.answer {
                    // Writing to a String does not fail.
                    let _ = write!(text, "; {}: {message}", asked.node);
                }
            }
            text
        };
        members::merge(&asked).ok_or_else(|| EtcdError::Unavailable(silent(&asked)))
    }

    /// Node and connection of a member that has answered.
    fn way_to(replies: &[Reply], id: u64) -> Option<(&str, &Client)> {
        let reply = replies.iter().find(|reply| reply.asked.id() == Some(id))?;
        Some((&reply.asked.node, reply.client.as_ref()?))
    }

    /// Returns a refusal of etcd as an error; other errors close the connection, so that another member can be tried.
    fn failed(&self, node: &str, error: Error) -> Result<String, EtcdError> {
        if error.is_answer() {
            return Err(EtcdError::Refused(error.to_string()));
        }
        self.connections().forget(node);
        Ok(format!("{node}: {error}"))
    }

    fn connections(&self) -> &Arc<Connections> {
        &self.0.0.etcd
    }

    /// Asks all pods concurrently.
    async fn ask_all(&self) -> Result<Vec<Reply>, EtcdError> {
        let pods = self.pods().await?;
        let credentials = self.connections().credentials().await?;
        if pods.is_empty() {
            return Err(EtcdError::Unavailable("there is no pod of etcd in kube-system yet".to_owned()));
        }
        let asking = |at: usize| {
            let (pod, credentials) = (&pods[at], &credentials);
            async move { (at, self.ask(pod, credentials).await) }
        };
        let mut asked: FuturesUnordered<_> = (0..pods.len()).map(asking).collect();
        let mut replies: Vec<Option<Reply>> = pods.iter().map(|_| None).collect();
        let mut answers = 0;
        let mut deadline = Instant::now() + PATIENCE;
        while let Ok(Some((at, reply))) = tokio::time::timeout_at(deadline, asked.next()).await {
            answers += usize::from(reply.asked.answer.is_ok());
            replies[at] = Some(reply);
            if 2 * answers > pods.len() {
                deadline = deadline.min(Instant::now() + GRACE);
            }
        }
        let silent = |pod: &MemberPod| {
            // Not how long: readers keep the text, and one that is another each time would be news each time.
            let answer = Err("it did not answer in time".to_owned());
            Reply { asked: Asked { node: pod.node.clone(), answer }, client: None }
        };
        Ok(pods.iter().zip(replies).map(|(pod, reply)| reply.unwrap_or_else(|| silent(pod))).collect())
    }

    async fn ask(&self, pod: &MemberPod, credentials: &capwasm_etcd::Credentials) -> Reply {
        let node = pod.node.clone();
        let client = match self.connections().to(pod, credentials).await {
            Ok(client) => client,
            Err(error) => return Reply { asked: Asked { node, answer: Err(explain(&error)) }, client: None },
        };
        let (status, list, alarms) = tokio::join!(client.status(), client.member_list(false), client.alarms());
        let answer = match (status, list) {
            (Ok(status), Ok(list)) => {
                let alarms = alarms.map(|alarms| alarms.alarms).map_err(|error| error.to_string());
                Ok(Report { status, members: list.members, alarms })
            }
            (Err(error), _) | (_, Err(error)) => {
                if !error.is_answer() {
                    self.connections().forget(&node);
                }
                Err(error.to_string())
            }
        };
        let client = answer.is_ok().then_some(client);
        Reply { asked: Asked { node, answer }, client }
    }

    async fn pods(&self) -> Result<Vec<MemberPod>, EtcdError> {
        let kind = Kind::new("", "v1", "Pod", "pods", true);
        let selector = Selector::labels([("component", "etcd"), ("tier", "control-plane")]);
        let pods = self.0.cache().list_live(&kind, Some("kube-system"), &selector).await?;
        let mut pods: Vec<MemberPod> = pods.iter().filter_map(|pod| member_pod(pod)).collect();
        pods.sort_by(|one, other| one.node.cmp(&other.node));
        Ok(pods)
    }
}

fn member_pod(pod: &Value) -> Option<MemberPod> {
    let name = meta::name(pod);
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).or_else(|| name.strip_prefix("etcd-"))?;
    Some(MemberPod { name: name.to_owned(), uid: meta::uid(pod).to_owned(), node: node.to_owned() })
}
