//! Messages of etcd's `Cluster` and `Maintenance` services (`etcdserverpb`, API version 3), with the field numbers of etcd's
//! `rpc.proto`. Fields that nobody here reads are left out; protobuf skips them.

use prost::{Enumeration, Message};

/// Header of every response.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct ResponseHeader {
    /// Id of the cluster.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Id of the member that answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Revision of the key-value store.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// Raft term.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// Member of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Member {
    /// Id of the member.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Name of the member; empty until its first start.
    #[prost(string, tag = "2")]
    pub name: String,
    /// URLs for other members.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// URLs for clients; empty until its first start.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Whether it is a learner, without a vote.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Request of `Cluster/MemberList`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberListRequest {
    /// Whether a majority has to agree on the answer; otherwise it is what the member knows. etcd before 3.5 always
    /// does the latter.
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}

/// Response of `Cluster/MemberList`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberListResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Request of `Cluster/MemberAdd`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberAddRequest {
    /// URLs for other members.
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    /// Whether to add it as a learner, without a vote.
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// Response of `Cluster/MemberAdd`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberAddResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The added member.
    #[prost(message, optional, tag = "2")]
    pub member: Option<Member>,
    /// All members.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

/// Request of `Cluster/MemberRemove`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberRemoveRequest {
    /// Id of the member to remove.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// Response of `Cluster/MemberRemove`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberRemoveResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The remaining members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Request of `Cluster/MemberPromote`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberPromoteRequest {
    /// Id of the learner to promote.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// Response of `Cluster/MemberPromote`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberPromoteResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Action of an [`AlarmRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
pub enum AlarmAction {
    /// Lists alarms.
    Get = 0,
    /// Raises an alarm.
    Activate = 1,
    /// Clears an alarm.
    Deactivate = 2,
}

/// Type of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
pub enum AlarmType {
    /// No alarm; in a request, all types.
    None = 0,
    /// The space quota is used up.
    Nospace = 1,
    /// The data differ from those of other members.
    Corrupt = 2,
}

impl AlarmType {
    /// Name in etcd's API, such as `NOSPACE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Nospace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}

/// Request of `Maintenance/Alarm`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct AlarmRequest {
    /// An [`AlarmAction`].
    #[prost(enumeration = "AlarmAction", tag = "1")]
    pub action: i32,
    /// Id of the member; 0 for all.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// An [`AlarmType`].
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub alarm: i32,
}

/// Alarm of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct AlarmMember {
    /// Id of the member.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// An [`AlarmType`].
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub alarm: i32,
}

/// Response of `Maintenance/Alarm`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct AlarmResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The raised alarms.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// Request of `Maintenance/Status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct StatusRequest {}

/// Response of `Maintenance/Status`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct StatusResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Version of etcd.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Size of the database in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// Id of the leader; 0 without one.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// Raft index.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// Raft term.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// Applied Raft index.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// Alarms, and a missing leader.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// Whether it is a learner, without a vote.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Request of `Maintenance/MoveLeader`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MoveLeaderRequest {
    /// Id of the new leader.
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// Response of `Maintenance/MoveLeader`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MoveLeaderResponse {
    /// Header of the response.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}
