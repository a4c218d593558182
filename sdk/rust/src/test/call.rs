//! Single calls of a provider's functions.

use capwasm_contract::{BootstrapData, ClusterAnswer, ControlPlaneAnswer, MachineAnswer, Outcome, PoolAnswer, Problem};
use serde_json::Value;

use crate::host::Host;
use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

/// Runs one function of a provider; its outcome is there after a problem, too.
pub fn run<R>(
    host: &dyn Host,
    function: impl FnOnce(&mut Context<'_>) -> Result<R, Problem>,
) -> (Result<R, Problem>, Outcome) {
    let mut cx = Context::new(host);
    let result = function(&mut cx);
    (result, cx.out)
}

/// Calls [`InfrastructureCluster::provision`].
pub fn provision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<ClusterAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// Calls [`InfrastructureCluster::deprovision`].
pub fn deprovision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// Calls [`InfrastructureMachine::provision`].
pub fn provision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<MachineAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// Calls [`InfrastructureMachine::deprovision`].
pub fn deprovision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// Calls [`InfrastructureMachinePool::provision`].
pub fn provision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<PoolAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// Calls [`InfrastructureMachinePool::deprovision`].
pub fn deprovision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// Calls [`Bootstrap::generate`].
pub fn generate<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<Option<BootstrapData>, Problem>, Outcome) {
    run(host, |cx| T::generate(cx, object))
}

/// Calls [`Bootstrap::release`].
pub fn release<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::release(cx, object))
}

/// Calls [`ControlPlane::reconcile`].
pub fn reconcile<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<ControlPlaneAnswer, Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// Calls [`ControlPlane::delete`].
pub fn delete<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}

/// Calls [`Controller::reconcile`].
pub fn reconcile_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<(), Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// Calls [`Controller::delete`].
pub fn delete_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}
