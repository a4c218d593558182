//! The roles' exports: decode the object, run the provider, hand over the outcome, encode the answer.

use std::marker::PhantomData;

use serde_json::Value;

use super::bindings::{
    admission, bootstrap, control_plane, controller, conversion, descriptor, imported::types, infrastructure_cluster,
    infrastructure_machine, infrastructure_machine_pool,
};
use super::imports::{Imports, deliver};
use crate::host::Host;
use crate::problem::{Fault, Problem};
use crate::provider::{
    Admission, Bootstrap, Context, ControlPlane, Controller, Conversion, Endpoint, InfrastructureCluster,
    InfrastructureMachine, InfrastructureMachinePool, Provider,
};

/// Runs one role function; the outcome is handed over whatever it returned.
fn run<R>(
    host: &dyn Host,
    object: &str,
    function: impl FnOnce(&mut Context<'_>, &Value) -> Result<R, Problem>,
) -> Result<R, types::Problem> {
    let object = parse(object).map_err(problem)?;
    let mut cx = Context::new(host);
    let result = function(&mut cx, &object);
    deliver(&cx.out);
    result.map_err(problem)
}

fn parse(object: &str) -> Result<Value, Problem> {
    serde_json::from_str(object)
        .map_err(|error| Problem::invalid("MalformedObject", format!("the object is not JSON: {error}")))
}

fn problem(problem: Problem) -> types::Problem {
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
        retry_after_ms: problem.retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
    }
}

fn endpoint(endpoint: Endpoint) -> types::Endpoint {
    types::Endpoint { host: endpoint.host, port: endpoint.port }
}

/// What the macros export: a provider behind the exports of its roles.
pub struct Guest<T>(PhantomData<T>);

const INFRASTRUCTURE: Imports<true, false, false> = Imports;
const BOOTSTRAP: Imports<false, true, false> = Imports;
const CONTROL_PLANE: Imports<false, true, true> = Imports;

impl<T: Provider> descriptor::Guest for Guest<T> {
    /// The same bytes every time: maps of `serde_json` are ordered by key.
    fn describe() -> String {
        serde_json::json!(T::describe()).to_string()
    }
}

impl<T: InfrastructureCluster> infrastructure_cluster::Guest for Guest<T> {
    fn provision(object: String) -> Result<infrastructure_cluster::Cluster, types::Problem> {
        let answer = run(&INFRASTRUCTURE, &object, T::provision)?;
        Ok(infrastructure_cluster::Cluster {
            provisioned: answer.provisioned,
            endpoint: answer.endpoint.map(endpoint),
            failure_domains: answer
                .failure_domains
                .into_iter()
                .map(|domain| types::FailureDomain {
                    name: domain.name,
                    control_plane: domain.control_plane,
                    attributes: domain.attributes,
                })
                .collect(),
        })
    }

    fn deprovision(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::deprovision)
    }
}

impl<T: InfrastructureMachine> infrastructure_machine::Guest for Guest<T> {
    fn provision(object: String) -> Result<infrastructure_machine::Machine, types::Problem> {
        let answer = run(&INFRASTRUCTURE, &object, T::provision)?;
        Ok(infrastructure_machine::Machine {
            provisioned: answer.provisioned,
            provider_id: answer.provider_id,
            addresses: answer
                .addresses
                .into_iter()
                .map(|address| types::Address { kind: address.kind.as_str().to_owned(), value: address.value })
                .collect(),
            failure_domain: answer.failure_domain,
        })
    }

    fn deprovision(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::deprovision)
    }
}

impl<T: InfrastructureMachinePool> infrastructure_machine_pool::Guest for Guest<T> {
    fn provision(object: String) -> Result<infrastructure_machine_pool::Pool, types::Problem> {
        let answer = run(&INFRASTRUCTURE, &object, T::provision)?;
        Ok(infrastructure_machine_pool::Pool {
            provisioned: answer.provisioned,
            provider_ids: answer.provider_ids,
            replicas: answer.replicas,
        })
    }

    fn deprovision(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::deprovision)
    }
}

impl<T: Controller> controller::Guest for Guest<T> {
    fn reconcile(object: String) -> Result<(), types::Problem> {
        run(&INFRASTRUCTURE, &object, T::reconcile)
    }

    fn delete(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::delete)
    }
}

impl<T: Conversion> conversion::Guest for Guest<T> {
    fn convert(objects: Vec<String>, to: String) -> Result<Vec<String>, types::Problem> {
        let convert = |text: String| T::convert(parse(&text)?, &to).map(|object| object.to_string());
        objects.into_iter().map(convert).collect::<Result<_, Problem>>().map_err(problem)
    }
}

impl<T: Admission> admission::Guest for Guest<T> {
    fn default(object: String, old: Option<String>) -> Result<String, types::Problem> {
        let work = || T::default(parse(&object)?, parse_old(old)?.as_ref()).map(|object| object.to_string());
        work().map_err(problem)
    }

    fn validate(object: String, old: Option<String>) -> Result<Vec<String>, types::Problem> {
        let work = || T::validate(&parse(&object)?, parse_old(old)?.as_ref());
        work().map_err(problem)
    }
}

fn parse_old(old: Option<String>) -> Result<Option<Value>, Problem> {
    old.map(|old| parse(&old)).transpose()
}

impl<T: Bootstrap> bootstrap::Guest for Guest<T> {
    fn generate(object: String) -> Result<Option<bootstrap::BootstrapData>, types::Problem> {
        let data = run(&BOOTSTRAP, &object, T::generate)?;
        Ok(data.map(|data| bootstrap::BootstrapData { format: data.format.as_str().to_owned(), value: data.value }))
    }

    fn release(object: String) -> Result<bool, types::Problem> {
        run(&BOOTSTRAP, &object, T::release)
    }
}

impl<T: ControlPlane> control_plane::Guest for Guest<T> {
    fn reconcile(object: String) -> Result<control_plane::State, types::Problem> {
        let answer = run(&CONTROL_PLANE, &object, T::reconcile)?;
        Ok(control_plane::State {
            initialized: answer.initialized,
            endpoint: answer.endpoint.map(endpoint),
            version: answer.version,
            replicas: answer.replicas,
            ready: answer.ready,
            available: answer.available,
            up_to_date: answer.up_to_date,
            selector: answer.selector,
        })
    }

    fn delete(object: String) -> Result<bool, types::Problem> {
        run(&CONTROL_PLANE, &object, T::delete)
    }
}
