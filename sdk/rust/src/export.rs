//! Macros that make a component out of a provider. They expand to nothing on other targets.

/// Exports a type that implements [`Provider`](crate::Provider),
/// [`InfrastructureCluster`](crate::InfrastructureCluster) and
/// [`InfrastructureMachine`](crate::InfrastructureMachine).
#[macro_export]
macro_rules! export_infrastructure_provider {
    ($provider:ty) => {
        $crate::export_interfaces!($provider: descriptor, infrastructure_cluster, infrastructure_machine);
    };
}

/// Exports a type that implements [`Provider`](crate::Provider) and [`Bootstrap`](crate::Bootstrap).
#[macro_export]
macro_rules! export_bootstrap_provider {
    ($provider:ty) => {
        $crate::export_interfaces!($provider: descriptor, bootstrap);
    };
}

/// Exports a type that implements [`Provider`](crate::Provider) and [`ControlPlane`](crate::ControlPlane).
#[macro_export]
macro_rules! export_control_plane_provider {
    ($provider:ty) => {
        $crate::export_interfaces!($provider: descriptor, control_plane);
    };
}

/// Exports any choice of the interfaces whose traits a type implements: `descriptor` ([`Provider`](crate::Provider)),
/// `infrastructure_cluster`, `infrastructure_machine`, `infrastructure_machine_pool`, `bootstrap`, `control_plane`,
/// `controller`, `conversion` and `admission`.
///
/// ```
/// struct Boxes; // and its traits
/// capwasm_sdk::export_interfaces!(Boxes: descriptor, infrastructure_machine_pool, conversion);
/// ```
#[macro_export]
macro_rules! export_interfaces {
    ($provider:ty: $($interface:ident),*) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, missing_docs, reason = "generated")]
        const _: () = {
            type Exported = $crate::guest::Guest<$provider>;
            $(
                const _: () = {
                    $crate::guest::bindings::$interface::export!(
                        Exported with_types_in $crate::guest::bindings::$interface
                    );
                };
            )*
        };
    };
}
