//! `conversion.convert`: an object in another API version of its kind.
//!
//! Pure, so it is called with no capability, no grant, a clock that stands at the epoch and one seed, under limits of its
//! own: a conversion that takes long or asks for anything is a mistake, and a client waits for it.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::Instance;

use super::{Guest, Provider, contained};
use crate::answer::Problem;
use crate::call::{Call, Capabilities, Facts, Function};
use crate::failure::{CallError, Failure};
use crate::grants::Grants;
use crate::record::tape::Tape;
use crate::state::State;

const NAME: &str = "conversion.convert";

/// Why objects were not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// The call came to nothing.
    #[error(transparent)]
    Call(Box<CallError>),
    /// The provider says that it cannot.
    #[error("{0}")]
    Refused(Problem),
    /// It collected an outcome, or answered another number of objects.
    #[error("the provider breaks the contract of {NAME}: {0}")]
    Contract(String),
}

impl From<CallError> for ConversionError {
    fn from(error: CallError) -> Self {
        ConversionError::Call(Box::new(error))
    }
}

impl Provider {
    /// Whether it exports `conversion`.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    /// `objects`, JSON text of one kind, each in version `to` (`group/version`), in order.
    ///
    /// # Errors
    /// When the provider does not convert, refuses, traps or passes a limit.
    pub async fn convert(&self, objects: Vec<String>, to: &str) -> Result<Vec<String>, ConversionError> {
        let Some(converter) = &self.converter else {
            return Err(self.guest.error(NAME, Failure::NotExported).into());
        };
        let expected = objects.len();
        let run = contained(converter.clone().convert(objects, to.to_owned())).await;
        let (answer, acted) = run
            .map_err(|message| converter.error(NAME, Failure::Panic { message }))?
            .map_err(|failure| converter.error(NAME, failure))?;
        let converted = answer.map_err(ConversionError::Refused)?;
        if acted {
            return Err(ConversionError::Contract("it used `outcome`".to_owned()));
        }
        if converted.len() != expected {
            let problem = format!("it answered {} objects for {expected}", converted.len());
            return Err(ConversionError::Contract(problem));
        }
        Ok(converted)
    }
}

impl Guest {
    /// The same component under the limits of a conversion.
    pub(super) fn for_conversion(&self) -> Guest {
        Guest { limits: self.limits.for_conversion(), ..self.clone() }
    }

    /// The answer, and whether it collected an outcome.
    async fn convert(
        self: Arc<Self>,
        objects: Vec<String>,
        to: String,
    ) -> Result<(Result<Vec<String>, Problem>, bool), Failure> {
        let waited = self.limits.wall_time();
        let permit = tokio::time::timeout(waited, self.shared.conversions.clone().acquire_owned()).await;
        let Ok(Ok(_permit)) = permit else { return Err(Failure::Busy { waited }) };
        let call = Call {
            // Not used: `conversion` belongs to no role.
            function: Function::ClusterProvision,
            object: String::new(),
            facts: Facts { id: "convert".into(), attempt: 1, ..Facts::default() },
            capabilities: Capabilities::none(),
            grants: Arc::new(Grants::default()),
            seed: 0,
            recorder: None,
        };
        let mut running = self.start(NAME, call, Tape::Off);
        let exports = self.exports.clone();
        let answer = running
            .run(&self, async |store: &mut Store<State>, instance: Instance, _: &String| {
                let indices = exports.conversion.as_ref();
                let guest = indices.ok_or_else(|| wasmtime::format_err!("{NAME} is not exported"))?;
                let guest = guest.load(&mut *store, &instance)?;
                let answer = guest.call_convert(&mut *store, &objects, &to).await?;
                let bytes = |texts: &Vec<String>| texts.iter().map(String::len).sum();
                let answer = answer.map_err(Problem::from);
                store.data_mut().outcome.charge(answer.as_ref().map_or_else(Problem::bytes, bytes))?;
                Ok(answer)
            })
            .await?;
        Ok((answer, !running.store.into_data().outcome.into_outcome().is_empty()))
    }
}
