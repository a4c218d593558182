//! Which component should serve: decided from what the source has, what serves, and what was said about the next one.

use crate::wasm_provider::UpdatePolicy;

/// What is known. Components are named by digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation<'a> {
    /// What the source has, or `spec.update.pin` names; none when it cannot be told.
    pub wanted: Option<&'a str>,
    /// Whether that is `spec.update.pin`.
    pub pinned: bool,
    /// What serves; after a start of the host what served last.
    pub active: Option<&'a str>,
    /// What served before and is kept, the newest first.
    pub previous: Option<&'a str>,
    /// What was given up after it served, and is not tried again.
    pub rejected: Option<&'a str>,
    /// Whether the active one trapped too often.
    pub traps: bool,
    /// What has to happen before another one serves.
    pub policy: UpdatePolicy,
    /// What may serve whatever the policy says.
    pub approved: Option<&'a str>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// This one serves from now on, or still.
    Serve(&'a str),
    /// The active one is given up for this one.
    RollBack(&'a str),
    /// This one is loaded and rehearsed; it serves if nothing differs.
    Rehearse(&'a str),
    /// This one is loaded, and somebody has to approve it.
    AskFor(&'a str),
    /// The active one goes on, since this one was given up.
    Leave(&'a str),
    /// The active one goes on, as far as there is one: what comes next is not known.
    Stay,
}

/// Decides.
pub fn decide<'a>(now: &Situation<'a>) -> Step<'a> {
    if let (true, false, Some(previous)) = (now.traps, now.pinned, now.previous) {
        return Step::RollBack(previous);
    }
    let Some(wanted) = now.wanted else { return Step::Stay };
    let first = now.active.is_none();
    if now.active == Some(wanted) || now.pinned {
        return Step::Serve(wanted);
    }
    if now.rejected == Some(wanted) && !first {
        return Step::Leave(wanted);
    }
    match now.policy {
        _ if first || now.approved == Some(wanted) => Step::Serve(wanted),
        UpdatePolicy::Immediate => Step::Serve(wanted),
        UpdatePolicy::RehearseFirst => Step::Rehearse(wanted),
        UpdatePolicy::Manual => Step::AskFor(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_component_serves_when_policy_people_and_traps_allow_it() {
        let base =
            Situation { wanted: Some("new"), active: Some("old"), previous: Some("older"), ..Situation::default() };
        let manual = Situation { policy: UpdatePolicy::Manual, ..base };
        let rehearsed = Situation { policy: UpdatePolicy::RehearseFirst, ..base };
        let rows = [
            ("immediate", base, Step::Serve("new")),
            ("nothing new", Situation { wanted: Some("old"), ..manual }, Step::Serve("old")),
            ("the first needs nobody", Situation { active: None, ..manual }, Step::Serve("new")),
            ("manual", manual, Step::AskFor("new")),
            ("approved", Situation { approved: Some("new"), ..manual }, Step::Serve("new")),
            ("another was approved", Situation { approved: Some("old"), ..manual }, Step::AskFor("new")),
            ("rehearsed first", rehearsed, Step::Rehearse("new")),
            ("approved without rehearsal", Situation { approved: Some("new"), ..rehearsed }, Step::Serve("new")),
            ("pinned", Situation { wanted: Some("older"), pinned: true, ..manual }, Step::Serve("older")),
            ("traps", Situation { wanted: Some("old"), traps: true, ..base }, Step::RollBack("older")),
            (
                "traps with nothing to go back to",
                Situation { wanted: Some("old"), traps: true, previous: None, ..base },
                Step::Serve("old"),
            ),
            (
                "traps of what somebody pinned",
                Situation { wanted: Some("old"), traps: true, pinned: true, ..base },
                Step::Serve("old"),
            ),
            ("given up", Situation { rejected: Some("new"), ..base }, Step::Leave("new")),
            (
                "given up, then approved",
                Situation { rejected: Some("new"), approved: Some("new"), ..base },
                Step::Leave("new"),
            ),
            ("another was given up", Situation { rejected: Some("other"), ..base }, Step::Serve("new")),
            ("the source is silent", Situation { wanted: None, ..base }, Step::Stay),
        ];
        for (name, situation, expected) in rows {
            assert_eq!(decide(&situation), expected, "{name}");
        }
    }
}
