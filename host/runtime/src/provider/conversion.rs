//! `conversion.convert`: converts objects to another API version of their kind.

use capwasm_contract::Failure;
use wasmtime::Store;

use super::{Exports, Provider, PureError, PureReply};
use crate::state::State;

const CONVERT: &str = "conversion.convert";

impl Provider {
    /// Whether `conversion` is exported.
    pub fn converts(&self) -> bool {
        self.guest.exports.conversion.is_some()
    }

    /// Converts `objects` of one kind, JSON texts, to version `to` (`group/version`), in order.
    ///
    /// # Errors
    /// When the provider does not convert, traps or passes a limit.
    pub async fn convert(&self, objects: Vec<String>, to: &str) -> Result<PureReply<Vec<String>>, PureError> {
        if !self.converts() {
            return Err(self.pure.error(CONVERT, Failure::NotExported).into());
        }
        let work = async |exports: &Exports, store: &mut Store<State>, instance| {
            let indices = exports.conversion.as_ref();
            let guest = indices.ok_or_else(|| wasmtime::format_err!("{CONVERT} is not exported"))?;
            guest.load(&mut *store, &instance)?.call_convert(&mut *store, &objects, to).await
        };
        let bytes = |texts: &Vec<String>| texts.iter().map(String::len).sum();
        let converted = self.pure.ask(CONVERT, &self.conversions, work, bytes).await?;
        if let Ok(texts) = &converted.answer
            && texts.len() != objects.len()
        {
            let problem = format!("it answered {} objects for {}", texts.len(), objects.len());
            return Err(PureError::Contract { function: CONVERT, problem });
        }
        Ok(converted)
    }
}
