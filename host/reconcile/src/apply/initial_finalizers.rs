//! Finalizers that objects are created with: an object that a plan creates needs no second write before its reconciler may act.

use std::{collections::HashMap, sync::Arc};

use capwasm_object::meta;
use parking_lot::RwLock;
use serde_json::Value;

use crate::kind::Kind;

/// What the reconcilers of this process put on every object of their kinds. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct InitialFinalizers(Arc<RwLock<HashMap<Kind, Vec<String>>>>);

impl InitialFinalizers {
    /// From now on objects of the kind are created with these finalizers.
    pub(crate) fn set(&self, kind: &Kind, finalizers: Vec<String>) {
        let mut kinds = self.0.write();
        if finalizers.is_empty() {
            kinds.remove(kind);
        } else {
            kinds.insert(kind.clone(), finalizers);
        }
    }

    pub(super) fn add_to(&self, kind: &Kind, object: &mut Value) {
        for finalizer in self.0.read().get(kind).into_iter().flatten() {
            meta::add_finalizer(object, finalizer);
        }
    }
}
