//! `admission`: defaults and rules of a provider's kinds.

use capwasm_contract::Failure;
use wasmtime::Store;

use super::{Exports, Provider, PureError, PureReply};
use crate::state::State;

const DEFAULT: &str = "admission.default";
const VALIDATE: &str = "admission.validate";

impl Provider {
    /// Whether `admission` is exported. The descriptor says for which kinds it is used.
    pub fn admits(&self) -> bool {
        self.guest.exports.admission.is_some()
    }

    /// Adds defaults to `object`, JSON text; `old` is the stored object, `None` on creation.
    ///
    /// # Errors
    /// When the provider does not admit, traps or passes a limit.
    pub async fn default_object(&self, object: String, old: Option<String>) -> Result<PureReply<String>, PureError> {
        if !self.admits() {
            return Err(self.pure.error(DEFAULT, Failure::NotExported).into());
        }
        let work = async |exports: &Exports, store: &mut Store<State>, instance| {
            let indices = exports.admission.as_ref();
            let guest = indices.ok_or_else(|| wasmtime::format_err!("{DEFAULT} is not exported"))?;
            guest.load(&mut *store, &instance)?.call_default(&mut *store, &object, old.as_ref()).await
        };
        self.pure.ask(DEFAULT, &self.admissions, work, String::len).await
    }

    /// Warnings for the client of an object that is valid.
    ///
    /// # Errors
    /// When the provider does not admit, traps or passes a limit.
    pub async fn validate_object(
        &self,
        object: String,
        old: Option<String>,
    ) -> Result<PureReply<Vec<String>>, PureError> {
        if !self.admits() {
            return Err(self.pure.error(VALIDATE, Failure::NotExported).into());
        }
        let work = async |exports: &Exports, store: &mut Store<State>, instance| {
            let indices = exports.admission.as_ref();
            let guest = indices.ok_or_else(|| wasmtime::format_err!("{VALIDATE} is not exported"))?;
            guest.load(&mut *store, &instance)?.call_validate(&mut *store, &object, old.as_ref()).await
        };
        self.pure
            .ask(VALIDATE, &self.admissions, work, |warnings: &Vec<String>| warnings.iter().map(String::len).sum())
            .await
    }
}
