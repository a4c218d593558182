//! Which commands there are.

use super::{Invocation, account_commands, file_commands, image_commands, service_commands, test_command};

/// Runs the command `name`; `None` when there is none of that name.
pub(super) async fn run(name: &str, call: &Invocation<'_>) -> Option<i32> {
    Some(match name {
        "true" | ":" => 0,
        "false" => 1,
        "echo" => echo(call),
        "printf" => printf(call),
        "sleep" => sleep(call).await,
        "hostname" => {
            call.say(call.node.hostname());
            0
        }
        "uname" => {
            call.say("Linux");
            0
        }
        "pwd" => {
            call.say(call.directory);
            0
        }
        "test" | "[" => test_command::run(name, call),
        "mkdir" => file_commands::mkdir(call),
        "cp" => file_commands::cp(call),
        "mv" => file_commands::mv(call),
        "rm" => file_commands::rm(call),
        "cat" => file_commands::cat(call),
        "tail" => file_commands::tail(call),
        "ls" => file_commands::ls(call),
        "touch" => file_commands::touch(call),
        "chmod" => file_commands::chmod(call),
        "chown" => file_commands::chown(call),
        "ln" => file_commands::ln(call),
        "tee" => file_commands::tee(call),
        "systemctl" => service_commands::systemctl(call),
        "crictl" => service_commands::crictl(call),
        "ctr" => image_commands::ctr(call),
        "id" => account_commands::id(call),
        "useradd" => account_commands::useradd(call),
        "usermod" => account_commands::usermod(call),
        "groupadd" => account_commands::groupadd(call),
        "passwd" => account_commands::passwd(call),
        "kubeadm" => crate::kubeadm::run(call).await,
        "kubectl" => crate::kubectl::run(call).await,
        _ => return None,
    })
}

fn raw(call: &Invocation<'_>, text: &str) -> i32 {
    i32::from(call.streams.out.write(call.node, text.as_bytes()).is_err())
}

fn echo(call: &Invocation<'_>) -> i32 {
    match call.arguments.split_first() {
        Some((option, rest)) if option == "-n" => raw(call, &rest.join(" ")),
        Some((option, rest)) if option == "-e" => raw(call, &format!("{}\n", unescape(&rest.join(" ")))),
        _ => raw(call, &format!("{}\n", call.arguments.join(" "))),
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
}

fn printf(call: &Invocation<'_>) -> i32 {
    let Some((format, arguments)) = call.arguments.split_first() else {
        call.complain("printf: usage: printf format [arguments]");
        return 2;
    };
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let format = unescape(format);
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match (c, c == '%') {
            (_, true) => match rest.next() {
                Some('%') => out.push('%'),
                Some('s' | 'd') => out.push_str(arguments.next().map_or("", String::as_str)),
                other => {
                    call.complain(format!(
                        "printf: %{}: unsupported directive",
                        other.map(String::from).unwrap_or_default()
                    ));
                    return 1;
                }
            },
            (c, false) => out.push(c),
        }
    }
    raw(call, &out)
}

async fn sleep(call: &Invocation<'_>) -> i32 {
    let [text] = call.arguments else {
        call.complain("sleep: missing operand");
        return 1;
    };
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text.as_str(), 1.0),
    };
    let seconds =
        number.parse::<f64>().ok().and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds * unit).ok());
    match seconds {
        Some(time) => {
            tokio::time::sleep(time).await;
            0
        }
        None => {
            call.complain(format!("sleep: invalid time interval '{text}'"));
            1
        }
    }
}
