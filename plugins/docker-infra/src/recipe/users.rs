//! Accounts, made by the machine's own tools.

use super::{Step, quote};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// None leaves the choice to the machine.
    pub gid: Option<u32>,
}

/// A user; what is empty is left to the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: Option<u32>,
    /// Full name.
    pub gecos: String,
    pub home: String,
    pub shell: String,
    /// Instead of a group of the user's own.
    pub primary_group: String,
    /// More groups; made when they are missing.
    pub groups: Vec<String>,
    /// Hash, as in `/etc/shadow`.
    pub password_hash: String,
    pub locked: bool,
    /// Of the system, not of a person.
    pub system: bool,
    /// Without a home directory.
    pub homeless: bool,
    /// Lines of `authorized_keys`.
    pub keys: Vec<String>,
    /// What sudo lets the user do: `ALL=(ALL) NOPASSWD:ALL`.
    pub sudo: Vec<String>,
}

impl Group {
    /// Makes it, unless it is there.
    pub fn step(&self) -> Step {
        let gid = self.gid.map(|gid| format!("-g {gid} ")).unwrap_or_default();
        Step::titled(format!("make group {}", self.name), format!("groupadd -f {gid}{}", self.name))
    }
}

impl User {
    /// Makes it, or changes the one that is there. Its password's hash and its keys are in no title.
    pub fn step(&self) -> Step {
        let name = &self.name;
        let mut lines: Vec<String> = self.groups.iter().map(|group| format!("groupadd -f {group}")).collect();
        lines.push(format!("{{ id -u {name} >/dev/null 2>&1 || useradd {}{name}; }}", self.options()));
        if !self.groups.is_empty() {
            lines.push(format!("usermod -aG {} {name}", self.groups.join(",")));
        }
        if !self.password_hash.is_empty() {
            lines.push(format!("usermod -p {} {name}", quote(&self.password_hash)));
        }
        if self.locked {
            lines.push(format!("passwd -l {name} >/dev/null"));
        }
        if !self.keys.is_empty() {
            let directory = quote(&format!("{}/.ssh", self.home()));
            lines.push(format!("mkdir -p {directory}"));
            lines.extend(
                self.keys.iter().map(|key| format!("printf '%s\\n' {} >>{directory}/authorized_keys", quote(key))),
            );
            lines.push(format!("chmod 700 {directory}"));
            lines.push(format!("chmod 600 {directory}/authorized_keys"));
            lines.push(format!("chown -R $(id -u {name}) {directory}"));
        }
        if !self.sudo.is_empty() {
            const FILE: &str = "/etc/sudoers.d/90-capwasm-users";
            lines.push("mkdir -p /etc/sudoers.d".to_owned());
            lines.extend(
                self.sudo.iter().map(|rule| format!("printf '%s\\n' {} >>{FILE}", quote(&format!("{name} {rule}")))),
            );
            lines.push(format!("chmod 440 {FILE}"));
        }
        Step::titled(format!("make user {name}"), lines.join(" &&\n"))
    }

    fn home(&self) -> String {
        match (self.home.as_str(), self.name.as_str()) {
            ("", "root") => "/root".to_owned(),
            ("", name) => format!("/home/{name}"),
            (home, _) => home.to_owned(),
        }
    }

    fn options(&self) -> String {
        let mut options = if self.homeless { "-M ".to_owned() } else { "-m ".to_owned() };
        if self.system {
            options.push_str("-r ");
        }
        if let Some(uid) = self.uid {
            options.push_str(&format!("-u {uid} "));
        }
        for (option, value) in
            [("-c", &self.gecos), ("-d", &self.home), ("-s", &self.shell), ("-g", &self.primary_group)]
        {
            if !value.is_empty() {
                options.push_str(&format!("{option} {} ", quote(value)));
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_user_is_made_once_and_its_secrets_are_in_no_title() {
        let user = User {
            name: "capi".to_owned(),
            gecos: "It's me".to_owned(),
            groups: vec!["wheel".to_owned()],
            password_hash: "$6$x$y".to_owned(),
            keys: vec!["ssh-rsa A me@x".to_owned()],
            sudo: vec!["ALL=(ALL) NOPASSWD:ALL".to_owned()],
            ..User::default()
        };
        let step = user.step();
        assert_eq!(step.title, "make user capi");
        for expected in [
            "groupadd -f wheel &&",
            r"|| useradd -m -c 'It'\''s me' capi; }",
            "usermod -aG wheel capi",
            "usermod -p '$6$x$y' capi",
            r"printf '%s\n' 'ssh-rsa A me@x' >>/home/capi/.ssh/authorized_keys",
            r"printf '%s\n' 'capi ALL=(ALL) NOPASSWD:ALL' >>/etc/sudoers.d/90-capwasm-users",
        ] {
            assert!(step.script.contains(expected), "{expected} in {}", step.script);
        }
        assert!(!step.script.contains("passwd -l"));
        let root = User { name: "root".to_owned(), keys: vec!["k".to_owned()], locked: true, ..User::default() };
        assert!(root.step().script.contains(">>/root/.ssh/authorized_keys"));
        assert!(root.step().script.contains("passwd -l root"));
    }
}
