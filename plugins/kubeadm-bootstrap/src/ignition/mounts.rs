//! Mounts as systemd units, because Ignition writes no fstab.

use serde_json::{Value, json};

use crate::config::ConfigSpec;

/// A unit for each of `spec.mounts`, which say device, mount point and options. The device may be the label of one of
/// `spec.diskSetup.filesystems`.
pub fn units(spec: &ConfigSpec) -> Result<Vec<Value>, String> {
    spec.mounts.iter().map(|mount| unit(spec, mount)).collect()
}

fn unit(spec: &ConfigSpec, mount: &[String]) -> Result<Value, String> {
    let [what, point, options @ ..] = mount else {
        return Err("mounts must say a device and a mount point each".into());
    };
    if !point.starts_with('/') {
        return Err(format!("mounts: {point:?} is not an absolute path"));
    }
    let labelled = spec.disk_setup.filesystems.iter().find(|filesystem| filesystem.label.as_ref() == Some(what));
    let device = match labelled {
        Some(filesystem) => filesystem.device.as_str(),
        None if what.starts_with('/') || what.contains('=') => what,
        None => {
            return Err(format!("mounts: {what:?} is neither a device nor the label of one of diskSetup.filesystems"));
        }
    };
    for text in [device, point].into_iter().chain(options.iter().map(String::as_str)) {
        if text.contains(char::is_control) {
            return Err(format!("mounts: {text:?} cannot stand in a unit"));
        }
    }
    let mut contents = format!(
        "[Unit]\nDescription=Mount {}\n\n[Mount]\nWhat={}\nWhere={}\n",
        literal(what),
        literal(device),
        literal(point)
    );
    if !options.is_empty() {
        contents.push_str(&format!("Options={}\n", literal(&options.join(","))));
    }
    contents.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    Ok(json!({"name": format!("{}.mount", escaped(point)), "enabled": true, "contents": contents}))
}

/// systemd takes % for the start of a specifier.
fn literal(text: &str) -> String {
    text.replace('%', "%%")
}

/// A path as the name of a unit: slashes become dashes, all that is not plain is written in hexadecimal.
fn escaped(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "-".into();
    }
    let mut out = String::new();
    for (at, byte) in parts.join("/").bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if at == 0 => out.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => out.push(char::from(b)),
            b => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_unit_is_named_for_its_mount_point_as_systemd_wants_it() {
        for (path, name) in [
            ("/var/lib/etcd", "var-lib-etcd"),
            ("/", "-"),
            ("/var//lib/", "var-lib"),
            ("/a-b/.c", "a\\x2db-.c"),
            ("/.x", "\\x2ex"),
            ("/with space", "with\\x20space"),
        ] {
            assert_eq!(escaped(path), name);
        }
    }
}
