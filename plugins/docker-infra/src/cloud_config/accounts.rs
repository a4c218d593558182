//! `groups` and `users` of a cloud-config.

use super::document::{list, map};
use crate::recipe::{Group, User, is_account};
use capwasm_yaml::Yaml;

/// `groups`: names, or names with their members.
pub fn groups(value: Yaml) -> Result<(Vec<Group>, Vec<User>), String> {
    let (mut groups, mut members) = (Vec::new(), Vec::new());
    let mut group = |name: &str| -> Result<String, String> {
        let name = account(name, "a group")?;
        groups.push(Group { name: name.clone(), gid: None });
        Ok(name)
    };
    let entries = match value {
        Yaml::Scalar { text, .. } => {
            names(&text).into_iter().map(|name| Yaml::Scalar { text: name, plain: false, binary: false }).collect()
        }
        value => list(value, "groups")?,
    };
    for entry in entries {
        match entry {
            Yaml::Scalar { text, .. } => drop(group(&text)?),
            Yaml::Map(fields) => {
                for (name, users) in fields {
                    let name = group(&name)?;
                    for user in words(users, "a group")? {
                        let user = account(&user, "a group's member")?;
                        members.push(User { name: user, groups: vec![name.clone()], ..User::default() });
                    }
                }
            }
            Yaml::List(_) => return Err("an entry of groups is neither a name nor a mapping".to_owned()),
        }
    }
    Ok((groups, members))
}

/// `users`, and the fields that have no effect here.
pub fn users(value: Yaml) -> Result<(Vec<User>, Vec<String>), String> {
    let (mut users, mut ignored) = (Vec::new(), Vec::new());
    for entry in list(value, "users")? {
        match entry {
            // The image's own user: there is none.
            Yaml::Scalar { text, .. } if text == "default" => {}
            Yaml::Scalar { text, .. } => {
                users.push(User { name: account(&text, "a user")?, locked: true, ..User::default() });
            }
            entry => users.push(user(entry, &mut ignored)?),
        }
    }
    Ok((users, ignored))
}

fn user(entry: Yaml, ignored: &mut Vec<String>) -> Result<User, String> {
    // As cloud-init does it: without a word about it, nobody logs in by password.
    let mut user = User { locked: true, ..User::default() };
    for (field, value) in map(Some(entry), "an entry of users")? {
        if value.is_null() {
            continue;
        }
        match field.as_str() {
            "name" => user.name = account(&scalar(value, &field)?, "a user")?,
            "uid" => {
                let uid = scalar(value, &field)?;
                user.uid = Some(uid.parse().map_err(|_| "uid of a user is not a number".to_owned())?);
            }
            "gecos" => user.gecos = line(scalar(value, &field)?, &field)?,
            "homedir" => user.home = line(scalar(value, &field)?, &field)?,
            "shell" => user.shell = line(scalar(value, &field)?, &field)?,
            "primary_group" => user.primary_group = account(&scalar(value, &field)?, "a primary group")?,
            "passwd" | "hashed_passwd" => user.password_hash = line(scalar(value, &field)?, &field)?,
            "lock_passwd" => user.locked = is_true(&scalar(value, &field)?),
            "system" => user.system = is_true(&scalar(value, &field)?),
            "no_create_home" => user.homeless = is_true(&scalar(value, &field)?),
            "groups" => {
                for group in words(value, &field)? {
                    user.groups.push(account(&group, "a group")?);
                }
            }
            "ssh_authorized_keys" | "ssh-authorized-keys" => user.keys = lines(value, &field)?,
            "sudo" => {
                user.sudo = match value {
                    Yaml::Scalar { text, .. } if matches!(text.to_ascii_lowercase().as_str(), "false" | "") => {
                        Vec::new()
                    }
                    Yaml::Scalar { text, .. } => vec![line(text, &field)?],
                    value => lines(value, &field)?,
                };
            }
            _ => ignored.push(format!("users[].{}", field.chars().take(80).collect::<String>())),
        }
    }
    if user.name.is_empty() {
        return Err("an entry of users has no name".to_owned());
    }
    Ok(user)
}

/// A name that no tool takes for an option or a path.
fn account(name: &str, what: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || !is_account(name) {
        Err(format!("the name of {what} has other letters than a-z, 0-9, - _ ."))
    } else {
        Ok(name.to_owned())
    }
}

fn scalar(value: Yaml, field: &str) -> Result<String, String> {
    match value {
        Yaml::Scalar { text, .. } => Ok(text),
        _ => Err(format!("{field} of an entry of users is not a scalar")),
    }
}

fn line(text: String, field: &str) -> Result<String, String> {
    let text = text.trim_end_matches('\n').to_owned();
    if text.chars().any(char::is_control) {
        Err(format!("{field} of an entry of users has control characters"))
    } else {
        Ok(text)
    }
}

fn lines(value: Yaml, field: &str) -> Result<Vec<String>, String> {
    list(value, field)?.into_iter().map(|entry| line(scalar(entry, field)?, field)).collect()
}

/// A list, or words with commas between them.
fn words(value: Yaml, field: &str) -> Result<Vec<String>, String> {
    match value {
        Yaml::Scalar { text, .. } => Ok(names(&text)),
        value => list(value, field)?.into_iter().map(|entry| scalar(entry, field)).collect(),
    }
}

fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn is_true(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1")
}
