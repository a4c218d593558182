//! A simulated OpenStack: the APIs of Keystone, Nova, Glance, Neutron, Octavia and Cinder on one loopback address.
//!
//! It is for fast tests and figures of what drives OpenStack. What is there is in memory, and nothing runs: a server becomes
//! `ACTIVE` because its time has come. Answers, error bodies and defaults are those of the 2026.1 release, as far as the surface
//! goes; what is not simulated is answered 404, never accepted silently.
//!
//! | path | service |
//! |---|---|
//! | `/identity/v3` | Keystone: tokens by password, application credential and token; catalog; projects, users, application credentials |
//! | `/compute/v2.1` | Nova, microversions 2.1 to 2.103 |
//! | `/image/v2` | Glance |
//! | `/networking/v2.0` | Neutron |
//! | `/load-balancer/v2` | Octavia |
//! | `/volume/v3` | Cinder |
//! | `/capwasm` | faults and the journal, see below |
//!
//! With [`Nodes`] an `ACTIVE` server boots: a container of the simulated engine runs its user data as cloud-init would, so that
//! it becomes a simulated Kubernetes node. Floating IPs and addresses of load balancers are addresses on loopback that are really
//! listened on, and lead to these nodes.
//!
//! [`Guests`] and [`Forwarding`] do the same for servers and addresses of an OpenStack that is not simulated, but whose Nova runs
//! nothing.
//!
//! Failures on request are [`CallFault`](capwasm_sim_service::faults::CallFault)s of [`OpenStack::faults`], or of `POST /capwasm/faults`; paths
//! are those of the table. [`OpenStack::journal`] and `GET /capwasm/calls` list the calls that were made.
//!
//! ```no_run
//! # async fn example() -> Result<(), capwasm_sim_openstack::StartError> {
//! use capwasm_sim_openstack::{OpenStack, Options};
//!
//! let cloud = OpenStack::start(Options::default()).await?;
//! println!("{}", cloud.clouds_yaml());
//! # cloud.stop().await;
//! # Ok(())
//! # }
//! ```

mod answer;
mod cinder;
mod cloud;
mod cloud_init;
mod control;
mod forwarding;
mod front;
mod glance;
mod guests;
mod in_process;
mod journal;
mod keystone;
mod neutron;
mod nodes;
mod nova;
mod octavia;
mod pace;
mod request;
mod seed;
mod table;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use forwarding::Forwarding;
pub use guests::{Boot, Guest, Guests};
pub use in_process::InProcess;
pub use journal::{Call, Journal};

use capwasm_sim_service::address::Addresses;
use capwasm_sim_service::faults::Faults;
use cloud::{Cloud, State};
use front::Front;
use pace::Pace;
use seed::Credentials;

/// What a simulated OpenStack is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where all services listen; port 0 stands for any that is free.
    pub listen: SocketAddr,
    /// How long servers, load balancers and volumes are under way.
    pub delays: Delays,
    /// Availability zones of Nova. Every server in the zone [`FAILING_ZONE`], which is always there besides, ends in `ERROR`.
    pub zones: Vec<String>,
    /// How long a token is valid.
    pub token_lifetime: Duration,
    /// Lets servers boot as simulated Kubernetes nodes.
    pub nodes: Option<Nodes>,
    /// Failures on request; a clone that is kept injects them from outside.
    pub faults: Faults,
}

/// The zone whose hosts fail every build.
pub const FAILING_ZONE: &str = "az-fail";

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            delays: Delays::default(),
            zones: vec!["az1".into(), "az2".into(), "az3".into()],
            token_lifetime: Duration::from_secs(24 * 60 * 60),
            nodes: None,
            faults: Faults::default(),
        }
    }
}

/// How long things take in between.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    /// A server in `BUILD`, and one that is being deleted.
    pub server: Duration,
    /// A load balancer and its parts in `PENDING_CREATE`, `PENDING_UPDATE` and `PENDING_DELETE`.
    pub load_balancer: Duration,
    /// A volume in `creating` and `deleting`.
    pub volume: Duration,
}

impl Default for Delays {
    fn default() -> Delays {
        let brief = Duration::from_millis(5);
        Delays { server: brief, load_balancer: brief, volume: brief }
    }
}

/// How servers become simulated Kubernetes nodes.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// Socket of the simulated engine whose containers they are. Containers that an earlier simulated OpenStack left there are
    /// removed at the start.
    pub engine: PathBuf,
    /// Kubernetes version of servers whose image does not say one: in the property `kube_version`, or in its name.
    pub version: String,
}

/// Why a simulated OpenStack cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its address cannot be bound.
    #[error("unable to listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// No range of addresses for its external network.
    #[error("unable to claim a range of loopback addresses")]
    Addresses(#[source] io::Error),
    /// The engine for its nodes does not answer.
    #[error("unable to use the simulated engine for nodes: {0}")]
    Engine(String),
}

/// A simulated OpenStack that serves requests.
pub struct OpenStack {
    address: SocketAddr,
    cloud: Arc<Cloud>,
    faults: Faults,
    journal: Journal,
    credentials: Credentials,
    /// Keeps the range of the external network's addresses.
    _range: Addresses,
}

impl OpenStack {
    /// Starts it with what a small cloud has: the clouds of [`OpenStack::clouds_yaml`], the external network `public`, the
    /// flavors `m1.tiny`, `m1.small` and `m1.medium`, the image `node-image`, the volume type `__DEFAULT__`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(options: Options) -> Result<OpenStack, StartError> {
        let failed = |error| StartError::Listen(options.listen, error);
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let range = Addresses::claim(None).map_err(StartError::Addresses)?;
        let mut state = State::default();
        let credentials = seed::plant(&mut state, range.range());
        let base = format!("http://{address}");
        let cloud =
            Cloud::new(base, Pace::Time(options.delays), options.zones, options.token_lifetime, options.nodes, state);
        if let Some(runner) = &cloud.runner {
            runner.guests().prepare().await.map_err(|error| StartError::Engine(error.to_string()))?;
        }
        let journal = Journal::default();
        let front = Front { cloud: Arc::clone(&cloud), faults: options.faults.clone(), journal: journal.clone() };
        cloud.spawn(front::serve(front, listener));
        cloud.spawn_whole(forwarding::run(Arc::clone(&cloud)));
        Ok(OpenStack { address, cloud, faults: options.faults, journal, credentials, _range: range })
    }

    /// The address that all services listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keystone's URL, with its version.
    pub fn auth_url(&self) -> String {
        format!("http://{}/identity/v3", self.address)
    }

    /// A `clouds.yaml` with the clouds `ost-admin` and `ost-demo` (password) and `ost-demo-appcred` (application credential).
    pub fn clouds_yaml(&self) -> String {
        self.credentials.clouds_yaml(&self.auth_url())
    }

    /// The calls that were made.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Failures that a test can request.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What projects have made and not deleted, as `ports/<name>`; what was there from the start is left out.
    pub fn resources(&self) -> Vec<String> {
        control::resources(&self.cloud)
    }

    /// Gives a server, by id or name, a status that it came to by itself: `ERROR` with a message, `SHUTOFF` and the like, or
    /// `GONE` for one that vanished. False when there is no such server or status.
    pub fn set_server(&self, server: &str, status: &str, message: &str) -> bool {
        control::set_server(&self.cloud, server, status, message)
    }

    /// Ends it; everything in it is gone.
    pub async fn stop(self) {
        self.cloud.end().await;
    }
}
