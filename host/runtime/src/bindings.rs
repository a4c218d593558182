//! Generated from `wit/provider.wit`. Private: the rest of the crate converts at the edge, so that a second contract
//! version is a second module like this one, not a change everywhere.

mod convert;

mod generated {
    #![allow(missing_docs, clippy::all, reason = "generated from the documented WIT")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "host",
        // Only what waits is async; the others just collect or tell, and stay off the fiber's slow path.
        imports: {
            "capwasm:provider/lookup.get": async | trappable,
            "capwasm:provider/lookup.list": async | trappable,
            "capwasm:provider/workload.get": async | trappable,
            "capwasm:provider/workload.list": async | trappable,
            "capwasm:provider/workload.serving-certificate": async | trappable,
            "capwasm:provider/secrets.open": async | trappable,
            "capwasm:provider/secrets.open-in": async | trappable,
            "capwasm:provider/secrets.bootstrap-data": async | trappable,
            "capwasm:provider/http.[method]client.send": async | trappable,
            "capwasm:provider/http.[method]client.recent": async | trappable,
            "capwasm:provider/etcd.members": async | trappable,
            "capwasm:provider/etcd.remove": async | trappable,
            "capwasm:provider/etcd.move-leader": async | trappable,
            "capwasm:provider/pki.new-authority": async | trappable,
            "capwasm:provider/pki.issue-client": async | trappable,
            "capwasm:provider/pki.new-signing-key": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        with: {
            "capwasm:provider/http.client": crate::capability::http::GuestClient,
            "capwasm:provider/secrets.secret": crate::capability::secrets::OpenSecret,
        },
    });
}

pub(crate) use generated::capwasm::provider::{call, etcd, http, log, lookup, outcome, pki, secrets, types, workload};
pub(crate) use generated::exports::capwasm::provider as exports;
