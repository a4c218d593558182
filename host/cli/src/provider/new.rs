//! `capwasm provider new`: a provider that builds, passes its tests and runs, to be changed into the one that is wanted.
//!
//! A project is a few files with holes for its names. Those of each role are beside this file, and a test builds and runs what
//! comes out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

/// The SDK's repository, unless an option or the checkout of this binary gives another source.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), ".git");
/// Longest name of a provider: kinds, CRDs and Secrets contain it.
const LONGEST_NAME: usize = 30;

/// Options of `capwasm provider new`.
#[derive(Args, Debug)]
pub struct Options {
    /// Name of the provider: lower-case letters, digits and dashes.
    name: String,
    /// What it is for.
    #[arg(long, value_enum)]
    role: Role,
    /// Folder of the project; it must not exist, or be empty. Default: the name.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// The SDK as a folder: `sdk/rust` of a checkout. Default: of the checkout that this binary is in, if it is in one.
    #[arg(long, conflicts_with = "sdk_git")]
    sdk: Option<PathBuf>,
    /// The SDK from a git repository.
    #[arg(long, value_name = "URL")]
    sdk_git: Option<String>,
    /// A commit or tag of that repository. Default: its main branch.
    #[arg(long, value_name = "REVISION", requires = "sdk_git")]
    sdk_rev: Option<String>,
}

/// What a provider can be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Clusters and machines of a cloud.
    Infrastructure,
    /// What machines run to become nodes.
    Bootstrap,
    /// The machines, or whatever else, that run a cluster's API servers.
    ControlPlane,
    /// Kinds of your own.
    Controller,
}

/// Path in the project, and its template.
type File = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("new/", $folder, "/", $path)))),*]
    };
}

const COMMON: &[File] = &[
    ("Cargo.toml", include_str!("new/common/Cargo.toml.in")),
    (".gitignore", include_str!("new/common/gitignore")),
    ("README.md", include_str!("new/common/README.md")),
];
const INFRASTRUCTURE: &[File] = files!("infrastructure":
    "src/lib.rs", "src/kinds.rs", "src/servers.rs", "src/tests.rs", "crds/{{lower}}clusters.json",
    "crds/{{lower}}machines.json", "crds/{{lower}}machinetemplates.json", "provider.yaml", "sample.yaml",
);
const BOOTSTRAP: &[File] = files!("bootstrap":
    "src/lib.rs", "src/kinds.rs", "src/tests.rs", "crds/{{lower}}configs.json", "crds/{{lower}}configtemplates.json",
    "provider.yaml", "sample.yaml",
);
const CONTROL_PLANE: &[File] = files!("control-plane":
    "src/lib.rs", "src/kinds.rs", "src/tests.rs", "crds/{{lower}}controlplanes.json", "provider.yaml", "sample.yaml",
);
const CONTROLLER: &[File] = files!("controller":
    "src/lib.rs", "src/kinds.rs", "src/tests.rs", "crds/{{plural}}.json", "provider.yaml", "sample.yaml",
);

impl Role {
    fn files(self) -> &'static [File] {
        match self {
            Role::Infrastructure => INFRASTRUCTURE,
            Role::Bootstrap => BOOTSTRAP,
            Role::ControlPlane => CONTROL_PLANE,
            Role::Controller => CONTROLLER,
        }
    }

    /// Section of the README.
    fn about(self) -> &'static str {
        match self {
            Role::Infrastructure => include_str!("new/infrastructure/about.md"),
            Role::Bootstrap => include_str!("new/bootstrap/about.md"),
            Role::ControlPlane => include_str!("new/control-plane/about.md"),
            Role::Controller => include_str!("new/controller/about.md"),
        }
    }
}

/// Writes the project and prints the next steps.
pub fn run(options: &Options) -> Result<()> {
    let names = Names::of(&options.name)?;
    let folder = options.directory.clone().unwrap_or_else(|| PathBuf::from(&options.name));
    let sdk = Sdk::of(options)?;
    let is_empty = fs::read_dir(&folder).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty {
        bail!("{} is not empty: give another --directory", folder.display());
    }
    for (path, text) in COMMON.iter().chain(options.role.files()) {
        write(
            &folder.join(names.fill(path)),
            &names.fill(&text.replace("{{about}}", options.role.about())).replace("{{sdk}}", &sdk.dependency),
        )?;
    }
    if let Some(lock) = &sdk.lock {
        let text = fs::read_to_string(lock).with_context(|| format!("unable to read {}", lock.display()))?;
        write(&folder.join("Cargo.lock"), &text)?;
    }
    println!(
        "{} is a provider. Next:\n\n  cd {}\n  cargo test\n  cargo build --profile plugin --target wasm32-wasip2\n  \
         capwasm quickstart --provider target/wasm32-wasip2/plugin/{}.wasm --sample sample.yaml\n\nREADME.md says what is where.",
        folder.display(),
        folder.display(),
        names.library
    );
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let unable = || format!("unable to write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(unable)?;
    }
    fs::write(path, text).with_context(unable)
}

/// Forms of the provider's name.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// `my-boxes`: provider and package.
    name: String,
    /// `my_boxes`: library and file of the component.
    library: String,
    /// `MyBoxes`: prefix of kinds.
    kind: String,
}

impl Names {
    fn of(name: &str) -> Result<Names> {
        let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !name.ends_with('-')
            && !name.contains("--")
            && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
        if !is_name || name.len() > LONGEST_NAME {
            bail!(
                "{name:?} cannot be the name of a provider: up to {LONGEST_NAME} lower-case letters, digits and single dashes, \
                 the first a letter"
            );
        }
        let kind = name.split('-').map(capitalized).collect();
        Ok(Names { name: name.to_owned(), library: name.replace('-', "_"), kind })
    }

    /// Replaces placeholders.
    fn fill(&self, text: &str) -> String {
        let lower = self.kind.to_lowercase();
        text.replace("{{name}}", &self.name)
            .replace("{{library}}", &self.library)
            .replace("{{Name}}", &self.kind)
            .replace("{{plural}}", &plural(&lower))
            .replace("{{lower}}", &lower)
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The plural as the SDK forms it, of a lower-case kind.
fn plural(singular: &str) -> String {
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// Dependency on the SDK.
struct Sdk {
    /// Content of the dependency's braces in Cargo.toml.
    dependency: String,
    /// Versions that the SDK's checkout was tested with; without them cargo takes the newest.
    lock: Option<PathBuf>,
}

impl Sdk {
    fn of(options: &Options) -> Result<Sdk> {
        let folder = match &options.sdk {
            Some(folder) => Some(folder.clone()),
            None if options.sdk_git.is_some() => None,
            None => checkout()?,
        };
        let Some(folder) = folder else {
            let url = options.sdk_git.as_deref().unwrap_or(REPOSITORY);
            let revision = options.sdk_rev.as_ref().map_or_else(String::new, |rev| format!(", rev = {rev:?}"));
            return Ok(Sdk { dependency: format!("git = {url:?}{revision}"), lock: None });
        };
        let folder = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
        if !is_sdk(&folder) {
            bail!("{} is not the SDK: give the folder sdk/rust of a checkout of capwasm", folder.display());
        }
        let lock = folder.ancestors().nth(2).map(|root| root.join("Cargo.lock")).filter(|lock| lock.is_file());
        let path = folder.to_str().with_context(|| format!("{} is not UTF-8", folder.display()))?;
        Ok(Sdk { dependency: format!("path = {path:?}"), lock })
    }
}

fn is_sdk(folder: &Path) -> bool {
    fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("name = \"capwasm-sdk\""))
}

/// The SDK in the checkout whose `target` folder has this binary.
fn checkout() -> Result<Option<PathBuf>> {
    let binary = std::env::current_exe().context("unable to find this binary")?;
    Ok(binary.ancestors().map(|folder| folder.join("sdk/rust")).find(|folder| is_sdk(folder)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn names_follow_from_one() {
        let names = Names::of("my-box2").unwrap();
        assert_eq!(
            names.fill("{{name}} {{library}} {{Name}} {{lower}} {{plural}}"),
            "my-box2 my_box2 MyBox2 mybox2 mybox2s"
        );
        for bad in ["", "Boxes", "2boxes", "boxes-", "-boxes", "my--boxes", "bö", "a b", &"x".repeat(31)] {
            assert!(Names::of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_hole_is_filled_in_every_role() {
        for role in Role::value_variants() {
            for (path, text) in COMMON.iter().chain(role.files()) {
                let names = Names::of("boxes").unwrap();
                let filled =
                    names.fill(&text.replace("{{about}}", role.about())).replace("{{sdk}}", "") + &names.fill(path);
                assert!(!filled.contains("{{"), "{role:?} {path}: {filled}");
            }
        }
    }
}
