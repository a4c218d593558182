//! The roles' exports: decode the object, run the provider, hand over the outcome, encode the answer.

use std::marker::PhantomData;

use capwasm_contract::Problem;
use serde_json::Value;

use super::bindings::{
    admission, bootstrap, control_plane, controller, conversion, descriptor, imported::types, infrastructure_cluster,
    infrastructure_machine, infrastructure_machine_pool,
};
use super::imports::{Imports, deliver};
use crate::host::Host;
use crate::provider::{
    Admission, Bootstrap, Context, ControlPlane, Controller, Conversion, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool, Provider,
};

/// Runs one role function; the outcome is handed over whatever it returned.
fn run<R>(
    host: &dyn Host,
    object: &str,
    function: impl FnOnce(&mut Context<'_>, &Value) -> Result<R, Problem>,
) -> Result<R, types::Problem> {
    let object = parse(object)?;
    let mut cx = Context::new(host);
    let result = function(&mut cx, &object);
    deliver(&cx.out);
    result.map_err(Into::into)
}

fn parse(object: &str) -> Result<Value, Problem> {
    serde_json::from_str(object)
        .map_err(|error| Problem::invalid("MalformedObject", format!("the object is not JSON: {error}")))
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
        run(&INFRASTRUCTURE, &object, T::provision).map(Into::into)
    }

    fn deprovision(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::deprovision)
    }
}

impl<T: InfrastructureMachine> infrastructure_machine::Guest for Guest<T> {
    fn provision(object: String) -> Result<infrastructure_machine::Machine, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::provision).map(Into::into)
    }

    fn deprovision(object: String) -> Result<bool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::deprovision)
    }
}

impl<T: InfrastructureMachinePool> infrastructure_machine_pool::Guest for Guest<T> {
    fn provision(object: String) -> Result<infrastructure_machine_pool::Pool, types::Problem> {
        run(&INFRASTRUCTURE, &object, T::provision).map(Into::into)
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
        objects.into_iter().map(convert).collect::<Result<_, Problem>>().map_err(Into::into)
    }
}

impl<T: Admission> admission::Guest for Guest<T> {
    fn default(object: String, old: Option<String>) -> Result<String, types::Problem> {
        let work = || T::default(parse(&object)?, parse_old(old)?.as_ref()).map(|object| object.to_string());
        work().map_err(Into::into)
    }

    fn validate(object: String, old: Option<String>) -> Result<Vec<String>, types::Problem> {
        let work = || T::validate(&parse(&object)?, parse_old(old)?.as_ref());
        work().map_err(Into::into)
    }
}

fn parse_old(old: Option<String>) -> Result<Option<Value>, Problem> {
    old.map(|old| parse(&old)).transpose()
}

impl<T: Bootstrap> bootstrap::Guest for Guest<T> {
    fn generate(object: String) -> Result<Option<bootstrap::BootstrapData>, types::Problem> {
        run(&BOOTSTRAP, &object, T::generate).map(|data| data.map(Into::into))
    }

    fn release(object: String) -> Result<bool, types::Problem> {
        run(&BOOTSTRAP, &object, T::release)
    }
}

impl<T: ControlPlane> control_plane::Guest for Guest<T> {
    fn reconcile(object: String) -> Result<control_plane::State, types::Problem> {
        run(&CONTROL_PLANE, &object, T::reconcile).map(Into::into)
    }

    fn delete(object: String) -> Result<bool, types::Problem> {
        run(&CONTROL_PLANE, &object, T::delete)
    }
}
