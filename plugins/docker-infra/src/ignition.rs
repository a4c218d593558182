//! Reads Ignition 2.x (and the same fields of 3.x), as far as a container can do what it asks for: directories, files and
//! links of the root filesystem, accounts, and units that are enabled.
//!
//! A unit that ends by itself (`Type=oneshot`) is run as a step; other units need systemd. What has no effect is named in
//! [`Recipe::ignored`].

mod config;
mod unit;

use crate::recipe::content::{data_url, gunzip};
use crate::recipe::{self, Directory, File, Group, LARGEST, Recipe, Step, User, is_account, normalize, quote};
use crate::tar::{Attributes, MAX_ID};
use config::{Config, Node};
use serde::Deserialize;
use serde_json::Value;

const UNITS: &str = "/etc/systemd/system";

/// Why a document is refused.
#[derive(Debug, thiserror::Error)]
pub enum IgnitionError {
    /// Neither memory nor the engine should see it.
    #[error("the bootstrap data has {0} bytes, more than {LARGEST}")]
    TooLarge(usize),
    /// Not Ignition. The source names places only.
    #[error("the bootstrap data is not an Ignition document: {0}")]
    Malformed(String),
    /// Another language under the same name.
    #[error("the bootstrap data is of Ignition version {0:?}, not 2 or 3")]
    Version(String),
    /// A part cannot be done as asked for.
    #[error("{what} {name:?}: {why}")]
    Bad {
        /// `file`, `unit`, …
        what: &'static str,
        name: String,
        why: &'static str,
    },
}

fn bad(what: &'static str, name: &str, why: &'static str) -> IgnitionError {
    IgnitionError::Bad { what, name: name.chars().take(200).collect(), why }
}

/// Interprets a document; `systemd` says whether the machine has it.
pub fn parse(bytes: &[u8], systemd: bool) -> Result<Recipe, IgnitionError> {
    if bytes.len() > LARGEST {
        return Err(IgnitionError::TooLarge(bytes.len()));
    }
    let config: Config = serde_json::from_slice(bytes).map_err(|error| {
        // serde's own words may quote values.
        IgnitionError::Malformed(format!(
            "{:?} error at line {} column {}",
            error.classify(),
            error.line(),
            error.column()
        ))
    })?;
    if !config.ignition.version.starts_with("2.") && !config.ignition.version.starts_with("3.") {
        return Err(IgnitionError::Version(config.ignition.version));
    }
    let mut recipe = Recipe { ignored: config.ignored(), ..Recipe::default() };
    for group in &config.passwd.groups {
        let name = account("group", &group.name)?;
        recipe.groups.push(Group { name, gid: group.gid });
    }
    for user in config.passwd.users {
        recipe.users.push(account_of(user)?);
    }
    for directory in &config.storage.directories {
        let (path, attributes, named_owner) = place("directory", directory, 0o755)?;
        recipe.directories.push(Directory { path, attributes, named_owner });
    }
    for file in config.storage.files {
        add_file(&mut recipe, file)?;
    }
    for link in &config.storage.links {
        recipe.commands.push(link_step(link)?);
    }
    for unit in config.systemd.units {
        unit::add(&mut recipe, unit, systemd)?;
    }
    Ok(recipe)
}

fn add_file(recipe: &mut Recipe, file: Node) -> Result<(), IgnitionError> {
    let (path, attributes, named_owner) = place("file", &file, 0o644)?;
    let bad = |why| bad("file", &path, why);
    let decode = |contents: &config::Contents| {
        let bytes = if contents.source.is_empty() { Ok(Vec::new()) } else { data_url(&contents.source) };
        match contents.compression.as_str() {
            "" => bytes,
            "gzip" => gunzip(&bytes?),
            _ => Err("the compression is not known"),
        }
    };
    let mut content = decode(&file.contents).map_err(bad)?;
    let append = match &file.append {
        Value::Array(parts) => {
            for part in parts {
                let part =
                    config::Contents::deserialize(part).map_err(|_| bad("a part of append has another shape"))?;
                content.extend(decode(&part).map_err(bad)?);
            }
            file.contents.source.is_empty() && !parts.is_empty()
        }
        flag => flag.as_bool().unwrap_or_default(),
    };
    let made = File { path, content, attributes, named_owner, append };
    match recipe.files.iter_mut().find(|known| known.path == made.path) {
        Some(known) if append => known.content.extend(made.content),
        // The later one counts, also its mode and owner.
        Some(known) => *known = made,
        None => recipe.files.push(made),
    }
    Ok(())
}

fn link_step(link: &Node) -> Result<Step, IgnitionError> {
    let path = normalize(&link.path).map_err(|why| bad("link", &link.path, why))?;
    if link.target.is_empty() || link.target.starts_with('-') || link.target.chars().any(char::is_control) {
        return Err(bad("link", &path, "the target is empty, or begins or goes on strangely"));
    }
    let directory = quote(path.rsplit_once('/').map_or("/", |(directory, _)| directory));
    let options = if link.hard { "-f" } else { "-sfn" };
    let script = format!("mkdir -p {directory}/ && ln {options} {} {}", quote(&link.target), quote(&path));
    Ok(Step::command(script))
}

/// Path, mode and owner of what lies in the file system.
fn place(what: &'static str, node: &Node, mode: u32) -> Result<(String, Attributes, Option<String>), IgnitionError> {
    if !matches!(node.filesystem.as_str(), "" | "root") {
        return Err(bad(what, &node.path, "only the root filesystem is there"));
    }
    let path = normalize(node.path.trim_end_matches('/')).map_err(|why| bad(what, &node.path, why))?;
    let mode = node.mode.unwrap_or(mode);
    if mode > 0o7777 {
        return Err(bad(what, &path, "the mode is more than 0o7777"));
    }
    let id = |owner: &config::Owner| owner.id.filter(|id| *id <= MAX_ID);
    let name = |owner: &config::Owner| owner.id.map(|id| id.to_string()).unwrap_or_else(|| owner.name.clone());
    let named = format!("{}:{}", name(&node.user), name(&node.group));
    let (numbers, named_owner) = recipe::owner(named.trim_end_matches(':')).map_err(|why| bad(what, &path, why))?;
    let attributes =
        Attributes { mode, uid: id(&node.user).unwrap_or(numbers.0), gid: id(&node.group).unwrap_or(numbers.1) };
    Ok((path, attributes, named_owner))
}

fn account(what: &'static str, name: &str) -> Result<String, IgnitionError> {
    if name.is_empty() || !is_account(name) {
        Err(bad(what, name, "the name has strange letters"))
    } else {
        Ok(name.to_owned())
    }
}

fn account_of(user: config::User) -> Result<User, IgnitionError> {
    let name = account("user", &user.name)?;
    let texts = [&user.gecos, &user.home_dir, &user.shell, &user.password_hash];
    if texts.into_iter().chain(&user.ssh_authorized_keys).any(|text| text.trim_end().chars().any(char::is_control)) {
        return Err(bad("user", &name, "a field has control characters"));
    }
    let groups = user.groups.iter().map(|group| account("group", group)).collect::<Result<_, _>>()?;
    let primary_group =
        if user.primary_group.is_empty() { String::new() } else { account("group", &user.primary_group)? };
    Ok(User {
        name,
        uid: user.uid,
        gecos: user.gecos,
        home: user.home_dir,
        shell: user.shell,
        primary_group,
        groups,
        password_hash: user.password_hash,
        locked: false,
        system: user.system,
        homeless: user.no_create_home,
        keys: user.ssh_authorized_keys.iter().map(|key| key.trim_end().to_owned()).collect(),
        sudo: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
