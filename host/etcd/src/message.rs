//! Messages of etcd's `Cluster` and `Maintenance` services (`etcdserverpb`, API version 3), with the field numbers of etcd's
//! `rpc.proto`. Fields that nobody here reads are left out; protobuf skips them.

use prost::{Enumeration, Message};

/// Comes with every answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct ResponseHeader {
    /// Of the cluster that answered.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Of the member that answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Revision of the key-value store.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// Raft's term.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// A member as the cluster knows it.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Member {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name; empty until it has started for the first time.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where other members reach it.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// Where clients reach it; none until it has started for the first time.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Whether it has no vote yet.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Asks for the members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberListRequest {
    /// Whether the answer has to be agreed on by a majority; otherwise it is what the asked member knows. etcd before 3.5
    /// always says what the member knows.
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}

/// The members.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberListResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All of them.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Adds a member.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberAddRequest {
    /// Where other members will reach it.
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    /// Without a vote at first.
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// The members after one was added.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberAddResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The new one.
    #[prost(message, optional, tag = "2")]
    pub member: Option<Member>,
    /// All of them.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

/// Takes a member out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberRemoveRequest {
    /// Which.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The members after one was taken out.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberRemoveResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Those that are left.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Gives a learner its vote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MemberPromoteRequest {
    /// Which.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The members after one was promoted.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberPromoteResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All of them.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// What to do with alarms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
pub enum AlarmAction {
    /// Tell them.
    Get = 0,
    /// Raise one.
    Activate = 1,
    /// Take one back.
    Deactivate = 2,
}

/// What a member is alarmed about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
pub enum AlarmType {
    /// Nothing; asks for all.
    None = 0,
    /// Its quota of space is used up.
    Nospace = 1,
    /// Its data are not what the others have.
    Corrupt = 2,
}

impl AlarmType {
    /// As etcd spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Nospace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}

/// Asks for alarms, or changes one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct AlarmRequest {
    /// What to do.
    #[prost(enumeration = "AlarmAction", tag = "1")]
    pub action: i32,
    /// Of which member; 0 is all.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Of which type.
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub alarm: i32,
}

/// One alarm of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct AlarmMember {
    /// Whose.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// What about.
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub alarm: i32,
}

/// Alarms of all members.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct AlarmResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Those that are raised.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// Asks a member about itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct StatusRequest {}

/// What a member says of itself.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct StatusResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Of the program.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Bytes of the database.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// Whom it takes for the leader; 0 when it knows none.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// Raft's index.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// Raft's term.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// What is applied of it.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// Alarms, and that there is no leader.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// Whether it has no vote yet.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Hands the lead over; only the leader does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MoveLeaderRequest {
    /// To whom.
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// The lead is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct MoveLeaderResponse {
    /// Who answered.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}
