//! Options for registries, and the credentials of `docker login`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use capwasm_registry::{Access, Credentials, DockerConfig, PrivateKey, PublicKey, Reference, Repository, Verification};
use clap::Args;
use serde::Deserialize;

/// Options of commands that speak to a registry.
#[derive(Args)]
pub struct Options {
    /// Credentials, as `docker login` writes them. Default: config.json in $DOCKER_CONFIG or ~/.docker.
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
    /// User of the registry; the password is read from standard input.
    #[arg(long, value_name = "USER", requires = "password_stdin")]
    username: Option<String>,
    /// Read the user's password from standard input.
    #[arg(long, requires = "username")]
    password_stdin: bool,
    /// Certificate authority (PEM) that is trusted besides the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Speak HTTP without TLS. A registry on loopback is spoken to without it anyway, unless --ca-file is given.
    #[arg(long)]
    plain_http: bool,
}

impl Options {
    /// Reads the named files, once for all references of a command.
    pub fn read(self) -> Result<Reachable> {
        let fixed = match self.username {
            Some(username) => {
                let mut password = String::new();
                std::io::stdin().read_to_string(&mut password).context("unable to read the password")?;
                let password = password.trim_end_matches(['\r', '\n']).to_owned();
                Some(Credentials::Basic { username, password })
            }
            None => None,
        };
        let config = match (&self.registry_config, &fixed) {
            (Some(file), _) => Some(docker_config(file)?),
            (None, None) => {
                default_config().filter(|file| file.is_file()).map(|file| docker_config(&file)).transpose()?
            }
            (None, Some(_)) => None,
        };
        let ca = self.ca_file.map(|file| read_text(&file)).transpose()?;
        Ok(Reachable { fixed, config, ca, plain_http: self.plain_http })
    }
}

/// Credentials and trust for registries.
pub struct Reachable {
    fixed: Option<Credentials>,
    config: Option<DockerConfig>,
    ca: Option<String>,
    plain_http: bool,
}

impl Reachable {
    /// The reference's repository.
    pub fn repository(&self, reference: &Reference) -> Result<Repository> {
        let credentials = match (&self.fixed, &self.config) {
            (Some(fixed), _) => Some(fixed.clone()),
            (None, Some(config)) => match (config.find(reference)?, config.helper(reference)) {
                (Some(found), _) => Some(found),
                (None, Some(helper)) => ask_helper(helper, reference.registry())?,
                (None, None) => None,
            },
            (None, None) => None,
        };
        let access = Access { credentials, ca: self.ca.clone(), plain_http: self.plain_http };
        Ok(Repository::new(reference, &access)?)
    }
}

fn default_config() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker")));
    folder.map(|folder| folder.join("config.json"))
}

fn docker_config(file: &Path) -> Result<DockerConfig> {
    DockerConfig::parse(read_text(file)?.as_bytes()).with_context(|| format!("unable to use {}", file.display()))
}

fn read_text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("unable to read {}", file.display()))
}

/// Runs a Docker credential helper.
fn ask_helper(name: &str, registry: &str) -> Result<Option<Credentials>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        username: String,
        secret: String,
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        bail!("{name:?} is not the name of a credential helper");
    }
    let program = format!("docker-credential-{name}");
    let server = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
    let unable = || format!("unable to ask {program} for the credentials of {registry}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(unable)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(server.as_bytes()).with_context(unable)?;
    }
    let output = child.wait_with_output().with_context(unable)?;
    if !output.status.success() {
        // What it has nothing for is public, or the registry will say so.
        return Ok(None);
    }
    // The parser's error would show a part of the secret.
    let Ok(answer) = serde_json::from_slice::<Answer>(&output.stdout) else { bail!("{}: no JSON", unable()) };
    Ok(Some(if answer.username == "<token>" {
        Credentials::Identity(answer.secret)
    } else {
        Credentials::Basic { username: answer.username, password: answer.secret }
    }))
}

/// Reads public keys, one of which must have signed.
pub fn public_keys(files: &[PathBuf]) -> Result<Vec<PublicKey>> {
    let read = |file: &PathBuf| {
        PublicKey::from_pem(&read_text(file)?).with_context(|| format!("unable to use {}", file.display()))
    };
    files.iter().map(read).collect()
}

/// Verification by these keys; none without keys.
pub fn verification(files: &[PathBuf]) -> Result<Verification> {
    public_keys(files).map(Verification::of)
}

/// Reads and decrypts a private key.
pub fn private_key(file: &Path) -> Result<PrivateKey> {
    let text = read_text(file)?;
    let password = password(&format!("Password of {}: ", file.display()))?;
    PrivateKey::from_pem(&text, password.as_bytes()).with_context(|| format!("unable to use {}", file.display()))
}

/// `COSIGN_PASSWORD`, as for cosign, or input at the terminal.
pub fn password(prompt: &str) -> Result<String> {
    match std::env::var("COSIGN_PASSWORD") {
        Ok(password) => Ok(password),
        Err(_) => rpassword::prompt_password(prompt)
            .context("there is no terminal to ask for the key's password: set COSIGN_PASSWORD (it may be empty)"),
    }
}
