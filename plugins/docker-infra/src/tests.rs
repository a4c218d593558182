//! The provider against a fake engine, pass after pass, from every state that a crash can leave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cluster;
mod fake_engine;
mod hostile;
mod leaks;
mod machine;
mod pool;
mod schema;

use std::cell::RefCell;
use std::rc::Rc;

use capwasm_sdk::test::{TestHost, write_back};
use capwasm_sdk::{Outcome, Problem};
use serde_json::Value;

use fake_engine::{FakeEngine, Trouble};

/// More passes than anything here needs.
const MOST_PASSES: usize = 60;

/// An engine, a host in front of it, and the object that is reconciled.
struct World {
    engine: Rc<RefCell<FakeEngine>>,
    host: TestHost,
    object: Value,
}

impl World {
    fn new(host: TestHost, object: Value) -> World {
        World::behind(host, object, Rc::new(RefCell::new(FakeEngine::default())))
    }

    /// In front of an engine that others use as well.
    fn behind(host: TestHost, object: Value, engine: Rc<RefCell<FakeEngine>>) -> World {
        let behind = Rc::clone(&engine);
        let host = host.http(move |request| behind.borrow_mut().handle(request));
        World { engine, host, object }
    }

    /// One pass; nothing of it is kept when the caller crashed in it.
    fn pass<R>(
        &mut self,
        function: impl FnOnce(&TestHost, &Value) -> (Result<R, Problem>, Outcome),
    ) -> Option<(Result<R, Problem>, Outcome)> {
        let (result, outcome) = function(&self.host, &self.object);
        if self.engine.borrow_mut().recover() {
            return None;
        }
        write_back(&outcome, &mut self.object);
        self.host.carry_out(&outcome);
        Some((result, outcome))
    }

    fn trouble(&self, at: usize, trouble: Trouble) {
        self.engine.borrow_mut().trouble = Some((at, trouble));
    }

    /// Whether the trouble has come.
    fn is_over(&self) -> bool {
        self.engine.borrow().trouble.is_none()
    }

    fn requests(&self) -> Vec<String> {
        self.engine.borrow().requests.clone()
    }
}

/// Every way in which one answer can be wrong.
fn troubles() -> Vec<Trouble> {
    vec![
        Trouble::Answer(404, r#"{"message": "gone"}"#),
        Trouble::Answer(409, r#"{"message": "busy"}"#),
        Trouble::Answer(500, r#"{"message": "broken"}"#),
        Trouble::Answer(502, "<html>"),
        Trouble::Answer(200, "]["),
        Trouble::Answer(201, ""),
        Trouble::Unreachable,
        Trouble::Silent,
    ]
}
