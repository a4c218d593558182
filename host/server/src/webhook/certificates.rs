//! The webhook's own CA and serving certificate. Keys are ECDSA P-256.
//!
//! The CA that signs comes first in the bundle that API servers trust; those before it stay in it until they end, so that
//! nothing is out of step while it is replaced.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use capwasm_pki::{Algorithm, Leaf, Pair, Validity};
use jiff::{Timestamp, ToSpan};
use k8s_openapi::ByteString;
use rustls_pki_types::CertificateDer;

/// Validity of a CA in days, and days before its end at which it is replaced.
const AUTHORITY: Lifetime = Lifetime { days: 730, renew: 365 };
/// The same for serving certificates, which are in memory only.
const SERVING: Lifetime = Lifetime { days: 90, renew: 30 };
/// Keys of the Secret's data.
const BUNDLE: &str = "ca.crt";
const KEY: &str = "ca.key";

struct Lifetime {
    days: i64,
    renew: i64,
}

/// The signing CA, and the trusted bundle.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// PEM: the signing CA, then predecessors that have not expired.
    pub bundle: String,
    key: String,
}

/// Serving certificate with its key as PEM.
pub struct Serving {
    /// The leaf only: clients have the CA.
    pub certificate: String,
    /// Private key, PKCS#8.
    pub key: String,
    /// When to replace it.
    pub renew: Timestamp,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("bundle", &self.bundle).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads a Secret's data; `None` if it is incomplete or invalid.
    pub fn from_data(data: &BTreeMap<String, ByteString>) -> Option<Authority> {
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        let authority = Authority { bundle: text(BUNDLE)?, key: text(KEY)? };
        let signer = capwasm_pki::Authority::from_pem(&authority.bundle, &authority.key).ok()?;
        ends(signer.der())?;
        Some(authority)
    }

    /// Data of the Secret.
    pub fn to_data(&self) -> BTreeMap<String, ByteString> {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        [(BUNDLE.to_owned(), bytes(&self.bundle)), (KEY.to_owned(), bytes(&self.key))].into()
    }

    /// The successor, if it is time.
    pub fn renewed(&self, now: Timestamp) -> Result<Option<Authority>> {
        if now < self.renew() {
            return Ok(None);
        }
        let mut next = Authority::new(now)?;
        let live = |certificate: &CertificateDer<'_>| ends(certificate).is_some_and(|end| end > now);
        for certificate in self.certificates().into_iter().filter(live) {
            next.bundle.push_str(&capwasm_pki::certificate_pem(&certificate));
        }
        Ok(Some(next))
    }

    /// When to replace it.
    pub fn renew(&self) -> Timestamp {
        let end = self.certificates().first().and_then(|current| ends(current));
        end.and_then(|end| later(end, -AUTHORITY.renew).ok()).unwrap_or(Timestamp::MIN)
    }

    /// Generates a CA.
    pub fn new(now: Timestamp) -> Result<Authority> {
        // A name of its own: two of one name and different keys in a bundle make verifiers try the wrong one first.
        let name = format!("capwasm-webhook-ca-{}", now.as_second());
        let made = capwasm_pki::Authority::new(&name, Algorithm::EcdsaP256, valid(now, &AUTHORITY)?, Some(0));
        let Pair { certificate, key } = made.context("unable to make a CA")?.pair();
        Ok(Authority { bundle: certificate, key })
    }

    /// A serving certificate for these names.
    pub fn issue(&self, names: &[String], now: Timestamp) -> Result<Serving> {
        let signer = capwasm_pki::Authority::from_pem(&self.bundle, &self.key).context("unable to read the CA")?;
        let leaf = Leaf::server("capwasm-webhook", names.to_vec());
        let signed = signer.issue(&leaf, Algorithm::EcdsaP256, valid(now, &SERVING)?);
        let Pair { certificate, key } = signed.context("unable to sign")?;
        let renew = later(now, SERVING.days - SERVING.renew)?;
        Ok(Serving { certificate, key, renew })
    }

    fn certificates(&self) -> Vec<CertificateDer<'static>> {
        capwasm_pki::certificates(&self.bundle).unwrap_or_default()
    }
}

/// From yesterday: clocks differ.
fn valid(now: Timestamp, lifetime: &Lifetime) -> Result<Validity> {
    Ok(Validity { from: later(now, -1)?.into(), until: later(now, lifetime.days)?.into() })
}

fn later(time: Timestamp, days: i64) -> Result<Timestamp> {
    time.checked_add((days * 24).hours()).context("a time that does not exist")
}

fn ends(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    Timestamp::from_second(capwasm_pki::not_after(certificate).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_authority_is_kept_until_its_last_year_and_trusted_until_its_end() {
        let first = Authority::new(at("2026-03-01T12:00:00Z")).unwrap();
        assert_eq!(Authority::from_data(&first.to_data()), Some(first.clone()), "it comes back from its Secret");
        assert!(first.renewed(at("2027-02-27T00:00:00Z")).unwrap().is_none());
        let second = first.renewed(at("2027-03-03T00:00:00Z")).unwrap().expect("time to renew");
        assert_eq!(second.certificates().len(), 2, "both are trusted");
        assert_eq!(second.certificates()[1], first.certificates()[0]);
        assert_eq!(Authority::from_data(&second.to_data()), Some(second.clone()));
        let third = second.renewed(at("2028-03-05T00:00:00Z")).unwrap().expect("time to renew");
        assert_eq!(third.certificates()[1..], second.certificates()[..1], "the first has ended");
    }

    #[test]
    fn what_is_no_authority_is_made_anew() {
        let whole = Authority::new(at("2026-03-01T12:00:00Z")).unwrap();
        let other = Authority::new(at("2026-03-01T12:00:00Z")).unwrap();
        let without = |key: &str| {
            let mut data = whole.to_data();
            data.remove(key);
            data
        };
        let mut broken = whole.to_data();
        broken.insert(BUNDLE.into(), ByteString(b"no certificate".to_vec()));
        let mut unlike = whole.to_data();
        unlike.insert(KEY.into(), ByteString(b"no key".to_vec()));
        for data in [without(BUNDLE), without(KEY), broken, unlike] {
            assert_eq!(Authority::from_data(&data), None);
        }
        assert_ne!(whole.bundle, other.bundle);
    }

    #[test]
    fn a_serving_certificate_is_for_its_names_and_signed_by_the_newest() {
        let now = at("2026-03-01T12:00:00Z");
        let first = Authority::new(now).unwrap();
        let second = first.renewed(at("2027-06-01T00:00:00Z")).unwrap().unwrap();
        let serving = second.issue(&["a.b.svc".into(), "127.0.0.1".into()], at("2027-06-01T00:00:00Z")).unwrap();
        assert_eq!(serving.renew, at("2027-07-31T00:00:00Z"));
        let leaf = capwasm_pki::certificate(&serving.certificate).unwrap();
        let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).unwrap();
        let signed_by = |authority: &Authority| {
            let ca = authority.certificates().remove(0);
            let (_, ca) = x509_parser::parse_x509_certificate(&ca).unwrap();
            leaf.verify_signature(Some(ca.public_key())).is_ok()
        };
        assert!(signed_by(&second) && !signed_by(&first));
        assert_eq!(leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 2);
    }
}
