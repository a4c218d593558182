//! `pki`: keys and certificates. Needs the grant `pki`; the number of keys per call is limited.
//!
//! Keys come from the operating system's entropy, never from the call's seed: they must not follow from a recording.
//! Times in certificates follow from the call's `now-ms`.

mod certificate;

use std::result::Result as Answer;

use capwasm_contract::recording::Request;
use capwasm_contract::{Algorithm, Pair, Refusal, Refused, Subject};
use rand::RngExt;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{pki, types};
use crate::budget::{Budget, Limit};
use crate::record::tape::Tape;

pub(crate) struct PkiView<'a> {
    pub(crate) granted: bool,
    pub(crate) now_ms: u64,
    pub(crate) budget: &'a Budget,
    pub(crate) tape: &'a mut Tape,
}

struct HasPki;

impl HasData for HasPki {
    type Data<'a> = PkiView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> PkiView<'_>) -> Result<()> {
    pki::add_to_linker::<T, HasPki>(linker, view)
}

/// Longest token in characters.
const TOKEN_CHARACTERS: u32 = 4_096;

fn may(granted: bool) -> Answer<(), Refused> {
    if granted { Ok(()) } else { Err(Refused::denied("keys and certificates are not granted; set spec.grants.pki")) }
}

/// Checks the grant and charges a key.
fn take_key(granted: bool, budget: &Budget) -> Answer<(), Refused> {
    may(granted)?;
    Ok(budget.charge(Limit::Keys, 1_u32)?)
}

/// RSA keys may take seconds to generate, so this runs on a blocking thread. Other keys take microseconds.
async fn off_thread<T: Send + 'static>(
    algorithm: Algorithm,
    work: impl FnOnce() -> Answer<T, Refused> + Send + 'static,
) -> Answer<T, Refused> {
    match algorithm {
        Algorithm::Rsa2048 | Algorithm::Rsa3072 | Algorithm::Rsa4096 => {
            let failed =
                |error| Refused::new(Refusal::Unavailable, "KeyNotMade", format!("unable to make the key: {error}"));
            tokio::task::spawn_blocking(work).await.map_err(failed)?
        }
        Algorithm::EcdsaP256 | Algorithm::EcdsaP384 | Algorithm::Ed25519 => work(),
    }
}

impl pki::Host for PkiView<'_> {
    async fn new_authority(
        &mut self,
        common_name: String,
        algorithm: pki::Algorithm,
        days: u32,
    ) -> Result<Answer<pki::Pair, types::CallError>> {
        let algorithm = Algorithm::from(algorithm);
        let request = || Request::NewAuthority { common_name: common_name.clone(), algorithm, days };
        let made = async {
            take_key(self.granted, self.budget)?;
            let (now_ms, name) = (self.now_ms, common_name.clone());
            off_thread(algorithm, move || certificate::authority(&name, algorithm, days, now_ms)).await
        };
        Ok(self.tape.ask(request, made).await?.map(Into::into).map_err(Into::into))
    }

    async fn issue_client(
        &mut self,
        authority: pki::Pair,
        subject: pki::Subject,
        algorithm: pki::Algorithm,
        days: u32,
    ) -> Result<Answer<pki::Pair, types::CallError>> {
        let (authority, subject) = (Pair::from(authority), Subject::from(subject));
        let algorithm = Algorithm::from(algorithm);
        let request =
            || Request::IssueClient { authority: authority.clone(), subject: subject.clone(), algorithm, days };
        let made = async {
            take_key(self.granted, self.budget)?;
            let (now_ms, authority, subject) = (self.now_ms, authority.clone(), subject.clone());
            off_thread(algorithm, move || certificate::client(&authority, &subject, algorithm, days, now_ms)).await
        };
        Ok(self.tape.ask(request, made).await?.map(Into::into).map_err(Into::into))
    }

    async fn new_signing_key(
        &mut self,
        algorithm: pki::Algorithm,
    ) -> Result<Answer<(String, String), types::CallError>> {
        let algorithm = Algorithm::from(algorithm);
        let made = async {
            take_key(self.granted, self.budget)?;
            off_thread(algorithm, move || certificate::signing_key(algorithm)).await
        };
        Ok(self.tape.ask(|| Request::NewSigningKey { algorithm }, made).await?.map_err(Into::into))
    }

    fn public_key_hash(&mut self, certificate_pem: String) -> Result<Answer<String, types::CallError>> {
        let request = || Request::PublicKeyHash { certificate_pem: certificate_pem.clone() };
        let hash = || may(self.granted).and_then(|()| certificate::public_key_hash(&certificate_pem));
        Ok(self.tape.ask_now(request, hash)?.map_err(Into::into))
    }

    fn not_after_ms(&mut self, certificate_pem: String) -> Result<Answer<u64, types::CallError>> {
        let request = || Request::NotAfterMs { certificate_pem: certificate_pem.clone() };
        let end = || may(self.granted).and_then(|()| certificate::not_after_ms(&certificate_pem));
        Ok(self.tape.ask_now(request, end)?.map_err(Into::into))
    }

    /// The contract has no error here, so what cannot be answered traps.
    fn random_token(&mut self, alphabet: String, length: u32) -> Result<String> {
        let request = || Request::RandomToken { alphabet: alphabet.clone(), length };
        let token = self.tape.ask_now(request, || {
            may(self.granted)?;
            token(&alphabet, length)
        })?;
        token.map_err(|refused| wasmtime::format_err!("pki.random-token: {}", refused.message))
    }
}

fn token(alphabet: &str, length: u32) -> Answer<String, Refused> {
    let alphabet: Vec<char> = alphabet.chars().collect();
    if alphabet.is_empty() {
        return Err(Refused::invalid("BadAlphabet", "the alphabet is empty"));
    }
    if length > TOKEN_CHARACTERS {
        return Err(Refused::invalid("TokenTooLong", format!("more than {TOKEN_CHARACTERS} characters")));
    }
    let mut rng = rand::rng();
    Ok((0..length).map(|_| alphabet[rng.random_range(0..alphabet.len())]).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::bindings::pki::Host;
    use crate::limits::Limits;

    #[tokio::test]
    async fn nothing_is_made_without_the_grant_or_past_the_number_of_keys() {
        let budget = Budget::new(&Limits { keys: 1, ..Limits::default() });
        let mut denied = PkiView { granted: false, now_ms: 0, budget: &budget, tape: &mut Tape::Off };
        let refused = denied.new_signing_key(pki::Algorithm::EcdsaP256).await.unwrap().unwrap_err();
        assert_eq!(refused.refusal, types::Refusal::Denied);
        assert!(denied.random_token("ab".into(), 3).is_err());

        let mut view = PkiView { granted: true, now_ms: 0, budget: &budget, tape: &mut Tape::Off };
        assert!(view.new_signing_key(pki::Algorithm::EcdsaP256).await.unwrap().is_ok());
        let refused = view.new_signing_key(pki::Algorithm::EcdsaP256).await.unwrap().unwrap_err();
        assert_eq!(refused.refusal, types::Refusal::Limit);
    }

    #[test]
    fn tokens_use_the_whole_alphabet_and_nothing_else() {
        let budget = Budget::new(&Limits { keys: 0, ..Limits::default() });
        let mut view = PkiView { granted: true, now_ms: 0, budget: &budget, tape: &mut Tape::Off };
        let token = view.random_token("abc".into(), 300).unwrap();
        assert_eq!(token.len(), 300);
        assert!("abc".chars().all(|c| token.contains(c)) && token.chars().all(|c| "abc".contains(c)));
        assert_ne!(token, view.random_token("abc".into(), 300).unwrap());
        assert!(view.random_token(String::new(), 3).is_err());
    }
}
