//! The roles' functions by name, with their answers in the form in which the host records them.

use capwasm_contract::{Answer, Function, Problem};
use serde_json::Value;

use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

/// `infrastructure-cluster`.
pub fn infrastructure_cluster<T: InfrastructureCluster>(
    function: Function,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Answer, Problem> {
    match function {
        Function::ClusterDeprovision => T::deprovision(cx, object).map(Answer::Gone),
        _ => T::provision(cx, object).map(Answer::Cluster),
    }
}

/// `infrastructure-machine`.
pub fn infrastructure_machine<T: InfrastructureMachine>(
    function: Function,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Answer, Problem> {
    match function {
        Function::MachineDeprovision => T::deprovision(cx, object).map(Answer::Gone),
        _ => T::provision(cx, object).map(Answer::Machine),
    }
}

/// `infrastructure-machine-pool`.
pub fn infrastructure_machine_pool<T: InfrastructureMachinePool>(
    function: Function,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Answer, Problem> {
    match function {
        Function::PoolDeprovision => T::deprovision(cx, object).map(Answer::Gone),
        _ => T::provision(cx, object).map(Answer::Pool),
    }
}

/// `bootstrap`.
pub fn bootstrap<T: Bootstrap>(function: Function, cx: &mut Context<'_>, object: &Value) -> Result<Answer, Problem> {
    match function {
        Function::BootstrapRelease => T::release(cx, object).map(Answer::Gone),
        _ => T::generate(cx, object).map(Answer::Bootstrap),
    }
}

/// `control-plane`.
pub fn control_plane<T: ControlPlane>(
    function: Function,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Answer, Problem> {
    match function {
        Function::ControlPlaneDelete => T::delete(cx, object).map(Answer::Gone),
        _ => T::reconcile(cx, object).map(Answer::ControlPlane),
    }
}

/// `controller`.
pub fn controller<T: Controller>(function: Function, cx: &mut Context<'_>, object: &Value) -> Result<Answer, Problem> {
    match function {
        Function::ControllerDelete => T::delete(cx, object).map(Answer::Gone),
        _ => T::reconcile(cx, object).map(|()| Answer::Reconciled),
    }
}
