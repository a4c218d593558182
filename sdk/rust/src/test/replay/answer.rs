//! The roles' functions by name, with their answers in the form in which the host records them.

use capwasm_contract::{Answer, Function, Problem};
use serde_json::Value;

use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

/// Calls the function of [`InfrastructureCluster`] that was recorded.
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

/// Calls the function of [`InfrastructureMachine`] that was recorded.
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

/// Calls the function of [`InfrastructureMachinePool`] that was recorded.
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

/// Calls the function of [`Bootstrap`] that was recorded.
pub fn bootstrap<T: Bootstrap>(function: Function, cx: &mut Context<'_>, object: &Value) -> Result<Answer, Problem> {
    match function {
        Function::BootstrapRelease => T::release(cx, object).map(Answer::Gone),
        _ => T::generate(cx, object).map(Answer::Bootstrap),
    }
}

/// Calls the function of [`ControlPlane`] that was recorded.
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

/// Calls the function of [`Controller`] that was recorded.
pub fn controller<T: Controller>(function: Function, cx: &mut Context<'_>, object: &Value) -> Result<Answer, Problem> {
    match function {
        Function::ControllerDelete => T::delete(cx, object).map(Answer::Gone),
        _ => T::reconcile(cx, object).map(|()| Answer::Reconciled),
    }
}
