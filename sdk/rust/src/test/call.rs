//! Single calls of a provider's functions.

use capwasm_contract::{BootstrapData, ClusterAnswer, ControlPlaneAnswer, MachineAnswer, Outcome, PoolAnswer, Problem};
use serde_json::Value;

use crate::host::Host;
use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

/// Runs one role function against a host.
pub fn run<R>(
    host: &dyn Host,
    function: impl FnOnce(&mut Context<'_>) -> Result<R, Problem>,
) -> (Result<R, Problem>, Outcome) {
    let mut cx = Context::new(host);
    let result = function(&mut cx);
    (result, cx.out)
}

/// `InfrastructureCluster::provision`.
pub fn provision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<ClusterAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureCluster::deprovision`.
pub fn deprovision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `InfrastructureMachine::provision`.
pub fn provision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<MachineAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureMachine::deprovision`.
pub fn deprovision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `InfrastructureMachinePool::provision`.
pub fn provision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<PoolAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureMachinePool::deprovision`.
pub fn deprovision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `Bootstrap::generate`.
pub fn generate<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<Option<BootstrapData>, Problem>, Outcome) {
    run(host, |cx| T::generate(cx, object))
}

/// `Bootstrap::release`.
pub fn release<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::release(cx, object))
}

/// `ControlPlane::reconcile`.
pub fn reconcile<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<ControlPlaneAnswer, Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// `ControlPlane::delete`.
pub fn delete<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}

/// `Controller::reconcile`.
pub fn reconcile_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<(), Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// `Controller::delete`.
pub fn delete_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}
