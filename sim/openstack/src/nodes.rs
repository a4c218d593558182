//! Servers as simulated Kubernetes nodes: containers of the simulated engine that run their user data.
//!
//! Each server has one task that does what happens to it in order: boot, halt, resume, end.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use http::Method;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Nodes;
use super::cloud::Cloud;
use super::guests::Guests;
use super::nova;

/// Lines of a console that are kept.
const CONSOLE: usize = 500;

pub(super) struct Runner {
    guests: Guests,
    servers: Mutex<HashMap<String, Server>>,
}

struct Server {
    orders: UnboundedSender<Order>,
    address: Option<Ipv4Addr>,
    console: Vec<String>,
}

/// What happens to a server.
enum Order {
    Boot,
    Halt,
    Resume,
    End,
}

impl Runner {
    pub fn new(nodes: Nodes) -> Runner {
        Runner { guests: Guests::new(nodes), servers: Mutex::default() }
    }

    pub fn guests(&self) -> &Guests {
        &self.guests
    }

    fn log(&self, server: &str, line: impl Into<String>) {
        if let Some(server) = self.servers.lock().get_mut(server) {
            server.console.push(line.into());
            let excess = server.console.len().saturating_sub(CONSOLE);
            server.console.drain(..excess);
        }
    }
}

/// Does what happens to one server, in order.
async fn attend(cloud: &Cloud, runner: &Runner, id: &str, mut orders: UnboundedReceiver<Order>) {
    let mut container: Option<String> = None;
    while let Some(order) = orders.recv().await {
        match order {
            Order::Boot => {
                let Some(boot) = cloud.look(|state| nova::booted(state, id)) else { continue };
                if boot.user_data.is_empty() {
                    runner.log(id, "cloud-init: no user data");
                    continue;
                }
                match runner.guests.start(id, &boot).await {
                    Ok(guest) => {
                        if let Some(server) = runner.servers.lock().get_mut(id) {
                            server.address = Some(guest.address);
                        }
                        cloud.changed.notify_one();
                        let name = container.insert(guest.container);
                        let log = |line| runner.log(id, line);
                        // Deleted while it boots: what runs in it ends with the container.
                        let done = tokio::select! {
                            done = runner.guests.initialize(id, &boot, name, &log) => done,
                            () = ends(&mut orders, runner, name) => {
                                finish(cloud, runner, id, Some(name)).await;
                                return;
                            }
                        };
                        if let Err(problem) = done {
                            tracing::info!(server = boot.name, problem, "user data of a simulated server failed");
                            runner.log(id, format!("cloud-init: {problem}"));
                        }
                    }
                    Err(problem) => {
                        tracing::warn!(server = boot.name, problem, "a simulated server does not boot");
                        runner.log(id, problem);
                    }
                }
            }
            Order::Halt => {
                if let Some(name) = &container {
                    runner.guests.order(name, Method::POST, "/stop").await;
                }
            }
            Order::Resume => {
                if let Some(name) = &container {
                    runner.guests.order(name, Method::POST, "/start").await;
                }
            }
            Order::End => {
                finish(cloud, runner, id, container.as_deref()).await;
                return;
            }
        }
    }
}

/// Waits for a server's end; halts and resumes it meanwhile.
async fn ends(orders: &mut UnboundedReceiver<Order>, runner: &Runner, container: &str) {
    loop {
        match orders.recv().await {
            Some(Order::Halt) => runner.guests.order(container, Method::POST, "/stop").await,
            Some(Order::Resume) => runner.guests.order(container, Method::POST, "/start").await,
            Some(Order::Boot) => {}
            Some(Order::End) | None => return,
        }
    }
}

async fn finish(cloud: &Cloud, runner: &Runner, id: &str, container: Option<&str>) {
    if let Some(container) = container {
        runner.guests.end(container).await;
    }
    runner.servers.lock().remove(id);
    cloud.with(|state| nova::remove(cloud, state, id));
    cloud.changed.notify_one();
}

fn tell(cloud: &Cloud, id: &str, order: Order) -> bool {
    let Some(runner) = &cloud.runner else { return false };
    let servers = runner.servers.lock();
    servers.get(id).is_some_and(|server| server.orders.send(order).is_ok())
}

/// Boots an `ACTIVE` server, where servers become nodes.
pub(super) fn boot(cloud: &Cloud, id: &str) {
    let (Some(runner), Some(shared)) = (&cloud.runner, cloud.shared()) else { return };
    let (orders, receiver) = unbounded_channel();
    runner.servers.lock().insert(id.to_owned(), Server { orders, address: None, console: Vec::new() });
    tell(cloud, id, Order::Boot);
    let id = id.to_owned();
    cloud.spawn(async move {
        if let Some(runner) = &shared.runner {
            attend(&shared, runner, &id, receiver).await;
        }
    });
}

/// Ends a server with its node; false when it has none.
pub(super) fn end(cloud: &Cloud, id: &str) -> bool {
    tell(cloud, id, Order::End)
}

/// The node of a server that is gone already.
pub(super) fn forget(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::End);
}

pub(super) fn halt(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::Halt);
}

pub(super) fn resume(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::Resume);
}

/// Address of a server's node.
pub(super) fn address(cloud: &Cloud, id: &str) -> Option<Ipv4Addr> {
    cloud.runner.as_ref()?.servers.lock().get(id)?.address
}

/// What a server wrote to its console.
pub(super) fn console(cloud: &Cloud, id: &str) -> String {
    let fake = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE".to_owned();
    let Some(runner) = &cloud.runner else { return fake };
    let servers = runner.servers.lock();
    servers.get(id).map_or(fake, |server| server.console.join("\n"))
}
