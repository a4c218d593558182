//! Which component should serve: decided from the source, the history and the update policy.

use crate::wasm_provider::UpdatePolicy;

/// Input of the decision. Components are named by digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation<'a> {
    /// The component of the source, or `spec.update.pin`; `None` when the source cannot be read.
    pub wanted: Option<&'a str>,
    /// Whether `wanted` is `spec.update.pin`.
    pub pinned: bool,
    /// The component that serves, or served before the host was restarted.
    pub active: Option<&'a str>,
    /// The newest component that served before.
    pub previous: Option<&'a str>,
    /// A component that was rolled back, and is not tried again.
    pub rejected: Option<&'a str>,
    /// Whether the active component failed its probation.
    pub traps: bool,
    pub policy: UpdatePolicy,
    /// `spec.update.approve`.
    pub approved: Option<&'a str>,
}

/// The next step, with the digest that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Serve this component.
    Serve(&'a str),
    /// Replace the active component by this earlier one.
    RollBack(&'a str),
    /// Load and rehearse this component; it serves if nothing differs.
    Rehearse(&'a str),
    /// Load this component and wait for approval.
    AskFor(&'a str),
    /// Keep the active component, since this one was rolled back.
    Leave(&'a str),
    /// Keep the active component, if any: the source cannot be read.
    Stay,
}

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
