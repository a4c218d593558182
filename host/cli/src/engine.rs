//! What machines run on, as arguments.

use std::path::PathBuf;

use capwasm_server::engine::{self, named::Environment};
use clap::{Args, ValueEnum};

/// Options of every command that provisions machines.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// What machines run on. `auto` takes Docker where it answers, and the simulator elsewhere.
    #[arg(long, value_enum, default_value = "auto")]
    engine: Choice,
    /// Socket of the Docker engine. Default: the engine that `docker` would take, by DOCKER_HOST, DOCKER_CONTEXT and the current
    /// context, as far as it is on a unix socket or on TCP without TLS.
    #[arg(long, env = "CAPWASM_DOCKER_SOCKET")]
    docker_socket: Option<PathBuf>,
    /// On Docker: run a simulated node in each container instead of kindest/node, for machines without an image registry.
    /// Images are made for these Kubernetes versions: `v1.34.0,v1.35.0`.
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    simulated_nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Choice {
    /// Docker where it answers, else the simulator.
    Auto,
    /// A Docker engine.
    Docker,
    /// The simulated engine.
    Sim,
}

impl Options {
    pub fn server(&self) -> engine::Options {
        let choice = match self.engine {
            Choice::Auto => engine::Choice::Auto,
            Choice::Docker => engine::Choice::Docker,
            Choice::Sim => engine::Choice::Sim,
        };
        engine::Options {
            choice,
            docker_socket: self.docker_socket.clone(),
            environment: Environment::of_this_process(),
            simulated_nodes: self.simulated_nodes.clone(),
        }
    }
}
