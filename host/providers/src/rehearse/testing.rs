//! A recording for tests.

use std::sync::Arc;

use capwasm_contract::recording::Ended;
use capwasm_contract::{Answer, Facts, Function, Outcome};
use capwasm_runtime::record::Recording;
use capwasm_runtime::{Grants, Limits};

/// A recording of provider `p`.
pub(crate) fn recording(id: &str) -> Recording {
    let object = r#"{"apiVersion":"a.example/v1","kind":"Machine","metadata":{"namespace":"ns","name":"m"}}"#;
    Recording {
        inexact: false,
        provider: "p".into(),
        version: "1".into(),
        digest: "sha256:aa".into(),
        host: "0".into(),
        function: Function::MachineProvision,
        object: Arc::new(object.to_owned()),
        facts: Facts { now_ms: 7, attempt: 1, id: id.into(), ..Facts::default() },
        seed: 1,
        limits: Limits::default(),
        grants: Arc::new(Grants::default()),
        tape: Vec::new(),
        ended: Ended::Replied { answer: Ok(Answer::Gone(false)), outcome: Outcome::default() },
    }
}
