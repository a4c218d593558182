//! `call`: facts of this call. Needs no grant.

use capwasm_contract::Facts;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{call, types};

pub(crate) struct CallView<'a> {
    pub(crate) facts: &'a Facts,
}

struct HasCall;

impl HasData for HasCall {
    type Data<'a> = CallView<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> CallView<'_>) -> Result<()> {
    call::add_to_linker::<T, HasCall>(linker, view)
}

impl call::Host for CallView<'_> {
    fn now_ms(&mut self) -> Result<u64> {
        Ok(self.facts.now_ms)
    }

    fn attempt(&mut self) -> Result<u32> {
        Ok(self.facts.attempt)
    }

    fn id(&mut self) -> Result<String> {
        Ok(self.facts.id.clone())
    }

    fn configuration(&mut self) -> Result<String> {
        Ok(if self.facts.configuration.is_empty() { "{}".to_owned() } else { self.facts.configuration.clone() })
    }

    fn related(&mut self, role: String) -> Result<Vec<String>> {
        Ok(self.facts.related.get(&role).cloned().unwrap_or_default())
    }

    fn results(&mut self) -> Result<Vec<(String, std::result::Result<(), types::CallError>)>> {
        let result = |result: &std::result::Result<(), capwasm_contract::Refused>| {
            result.clone().map_err(types::CallError::from)
        };
        Ok(self.facts.results.iter().map(|(key, ended)| (key.clone(), result(ended))).collect())
    }
}
