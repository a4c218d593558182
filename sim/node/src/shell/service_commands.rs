//! `systemctl` and `crictl`: a simulated node has its services always on and no pods.

use super::Invocation;

/// Units that a node has.
const UNITS: [&str; 5] = ["containerd", "kubelet", "systemd-journald", "systemd-networkd", "dbus"];

pub(super) fn systemctl(call: &Invocation<'_>) -> i32 {
    let quiet = call.arguments.iter().any(|argument| argument == "--quiet" || argument == "-q");
    let operands: Vec<&str> =
        call.arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with('-')).collect();
    let Some((verb, units)) = operands.split_first() else {
        call.complain("systemctl: a command is needed");
        return 1;
    };
    let known = |unit: &&str| UNITS.contains(&unit.trim_end_matches(".service"));
    match *verb {
        "daemon-reload" => 0,
        "is-active" | "is-enabled" => {
            let state = if *verb == "is-active" { ("active", "inactive") } else { ("enabled", "disabled") };
            let all = !units.is_empty() && units.iter().all(known);
            if !quiet {
                call.say(if all { state.0 } else { state.1 });
            }
            if all { 0 } else { 3 }
        }
        "is-system-running" => {
            call.say("running");
            0
        }
        "start" | "restart" | "reload" | "enable" => match units.iter().find(|unit| !known(unit)) {
            Some(unit) => {
                call.complain(format!(
                    "Failed to {verb} {0}.service: Unit {0}.service not found.",
                    unit.trim_end_matches(".service")
                ));
                5
            }
            None => 0,
        },
        verb => {
            call.complain(format!("systemctl: {verb} is not supported on a capwasm simulated node"));
            1
        }
    }
}

pub(super) fn crictl(call: &Invocation<'_>) -> i32 {
    match call.arguments.iter().map(String::as_str).find(|argument| !argument.starts_with('-')) {
        Some("version") => {
            call.say("RuntimeName:  capwasm simulated node");
            0
        }
        Some("info") => {
            call.say(r#"{"status":{"conditions":[{"type":"RuntimeReady","status":true}]}}"#);
            0
        }
        Some("ps") => {
            call.say("CONTAINER           IMAGE               CREATED             STATE               NAME");
            0
        }
        Some("pods") => {
            call.say("POD ID              CREATED             STATE               NAME                NAMESPACE");
            0
        }
        Some("images") => {
            call.say("IMAGE               TAG                 IMAGE ID            SIZE");
            for image in super::image_commands::imported(call.node.files()) {
                let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
                call.say(format!("{name:<19} {tag:<19} -                   -"));
            }
            0
        }
        other => {
            call.complain(format!(
                "crictl: {} is not supported on a capwasm simulated node",
                other.unwrap_or("no command")
            ));
            1
        }
    }
}
