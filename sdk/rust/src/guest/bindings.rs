//! Generated from `wit/`: one world with every import, so that the glue over them is written once (what a component
//! really imports is what its code uses), and one world per exported interface, so that a component exports any set of
//! them. The linker unites the worlds of the macros that a provider invokes.
#![allow(unsafe_code, missing_docs, rust_2018_idioms, clippy::all, reason = "generated")]

/// Every interface that any provider may import.
pub mod imported {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package capwasm:sdk;
            world imported {
                import capwasm:provider/call@0.1.0;
                import capwasm:provider/outcome@0.1.0;
                import capwasm:provider/lookup@0.1.0;
                import capwasm:provider/workload@0.1.0;
                import capwasm:provider/secrets@0.1.0;
                import capwasm:provider/http@0.1.0;
                import capwasm:provider/etcd@0.1.0;
                import capwasm:provider/pki@0.1.0;
                import capwasm:provider/log@0.1.0;
            }",
        world: "capwasm:sdk/imported",
        generate_all,
    });
    pub use self::capwasm::provider::*;
}

pub mod descriptor {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world descriptor { export capwasm:provider/descriptor@0.1.0; }",
        world: "capwasm:sdk/descriptor",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::descriptor::*;
}

pub mod infrastructure_cluster {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world infrastructure-cluster { export capwasm:provider/infrastructure-cluster@0.1.0; }",
        world: "capwasm:sdk/infrastructure-cluster",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::infrastructure_cluster::*;
}

pub mod infrastructure_machine {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world infrastructure-machine { export capwasm:provider/infrastructure-machine@0.1.0; }",
        world: "capwasm:sdk/infrastructure-machine",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::infrastructure_machine::*;
}

pub mod bootstrap {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world bootstrap { export capwasm:provider/bootstrap@0.1.0; }",
        world: "capwasm:sdk/bootstrap",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::bootstrap::*;
}

pub mod control_plane {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world control-plane { export capwasm:provider/control-plane@0.1.0; }",
        world: "capwasm:sdk/control-plane",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::control_plane::*;
}

pub mod infrastructure_machine_pool {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world infrastructure-machine-pool { export capwasm:provider/infrastructure-machine-pool@0.1.0; }",
        world: "capwasm:sdk/infrastructure-machine-pool",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::infrastructure_machine_pool::*;
}

pub mod controller {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world controller { export capwasm:provider/controller@0.1.0; }",
        world: "capwasm:sdk/controller",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::controller::*;
}

pub mod conversion {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world conversion { export capwasm:provider/conversion@0.1.0; }",
        world: "capwasm:sdk/conversion",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::conversion::*;
}

pub mod admission {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package capwasm:sdk; world admission { export capwasm:provider/admission@0.1.0; }",
        world: "capwasm:sdk/admission",
        pub_export_macro: true,
        with: { "capwasm:provider/types@0.1.0": crate::guest::bindings::imported::types },
    });
    pub use self::exports::capwasm::provider::admission::*;
}
