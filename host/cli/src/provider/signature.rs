//! `capwasm provider keygen | sign | verify`: signatures by key pairs, as cosign makes them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capwasm_registry::{PrivateKey, PublicKey, Reference, resolve, sign_blob, verify_blob};
use capwasm_server::files::write_private;
use clap::Args;
use serde::Serialize;

use super::registry;
use crate::output::Output;

/// Options of `capwasm provider keygen`.
#[derive(Args)]
pub struct Keygen {
    /// Write PREFIX.key and PREFIX.pub.
    #[arg(long, value_name = "PREFIX", default_value = "cosign")]
    output_key_prefix: PathBuf,
}

/// Options of `capwasm provider sign`.
#[derive(Args)]
pub struct Sign {
    /// REGISTRY/REPOSITORY:TAG or with @sha256:…; or a file, whose signature is written beside it as FILE.sig.
    what: String,
    /// The private key. Its password is in COSIGN_PASSWORD, or is asked for.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    registry: registry::Options,
    #[command(flatten)]
    output: Output,
}

/// Options of `capwasm provider verify`.
#[derive(Args)]
pub struct Verify {
    /// REGISTRY/REPOSITORY:TAG or with @sha256:…; or a file, whose signature is in FILE.sig.
    what: String,
    /// A public key; any one of them where it is given again.
    #[arg(long, value_name = "FILE", required = true)]
    key: Vec<PathBuf>,
    #[command(flatten)]
    registry: registry::Options,
    #[command(flatten)]
    output: Output,
}

/// Signed object.
enum What {
    Artifact(Reference),
    File(PathBuf),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signed {
    /// Reference by digest, or the file.
    reference: String,
    /// Digest of the public key's DER form.
    key: String,
}

pub fn keygen(options: &Keygen) -> Result<()> {
    let file = |suffix: &str| {
        let mut name = options.output_key_prefix.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    let (private, public) = (file(".key"), file(".pub"));
    if let Some(there) = [&private, &public].into_iter().find(|file| file.exists()) {
        bail!("{} is there already: choose another --output-key-prefix", there.display());
    }
    let password = registry::password("Password of the new key: ")?;
    if std::env::var_os("COSIGN_PASSWORD").is_none() && registry::password("Once more: ")? != password {
        bail!("the two passwords differ");
    }
    let key = PrivateKey::generate()?;
    write_private(&private, &key.to_pem(password.as_bytes())?)?;
    std::fs::write(&public, key.public()?.to_pem()).with_context(|| format!("unable to write {}", public.display()))?;
    println!("{}\n{}", private.display(), public.display());
    Ok(())
}

pub async fn sign(options: Sign) -> Result<()> {
    let what = what(&options.what)?;
    let key = registry::private_key(&options.key)?;
    let reference = match what {
        What::Artifact(reference) => {
            let repository = options.registry.read()?.repository(&reference)?;
            let (digest, _) = resolve(&repository, &reference).await?;
            let pinned = reference.pinned(&digest);
            capwasm_registry::sign(&repository, &pinned, &key).await?;
            pinned.to_string()
        }
        What::File(file) => {
            let signature = signature_file(&file);
            let text = sign_blob(&read(&file)?, &key)?;
            std::fs::write(&signature, text).with_context(|| format!("unable to write {}", signature.display()))?;
            signature.display().to_string()
        }
    };
    print(options.output, reference, &key.public()?)
}

pub async fn verify(options: Verify) -> Result<()> {
    let what = what(&options.what)?;
    let keys = registry::public_keys(&options.key)?;
    match what {
        What::Artifact(reference) => {
            let repository = options.registry.read()?.repository(&reference)?;
            let (digest, _) = resolve(&repository, &reference).await?;
            let pinned = reference.pinned(&digest);
            let key = capwasm_registry::verify(&repository, &pinned, &keys).await?;
            print(options.output, pinned.to_string(), key)
        }
        What::File(file) => {
            let signature = read(&signature_file(&file))?;
            let key = verify_blob(&read(&file)?, &signature, &keys).with_context(|| file.display().to_string())?;
            print(options.output, file.display().to_string(), key)
        }
    }
}

/// Name of the file with a file's signature.
fn signature_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

fn what(text: &str) -> Result<What> {
    match text.parse() {
        Ok(reference) => Ok(What::Artifact(reference)),
        Err(_) if Path::new(text).is_file() => Ok(What::File(text.into())),
        Err(error) => bail!("{text} is neither a file nor an artifact: {error}"),
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("unable to read {}", file.display()))
}

fn print(output: Output, reference: String, key: &PublicKey) -> Result<()> {
    let signed = Signed { reference, key: key.fingerprint().to_string() };
    output.print(&signed, |signed| format!("{}  signed by {}\n", signed.reference, signed.key))
}
