//! Scope of a cache: everything that is read, some kinds, or a part of a kind.

use crate::{kind::Kind, selector::Selector};

/// Kinds that a cache watches.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// All kinds that are read.
    Everything,
    /// Only these, each kind once. Other reads are live and trigger no reconcile.
    Only(&'static [Extent]),
}

/// A kind, or a part of it, that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// `None` for all objects.
    pub part: Option<Part>,
}

impl Extent {
    /// All objects of a kind.
    pub const fn whole(group: &'static str, kind: &'static str) -> Self {
        Self { group, kind, part: None }
    }

    /// The objects of one namespace with these labels. Only a list with exactly these labels is answered from the
    /// watch.
    pub const fn part(
        group: &'static str,
        kind: &'static str,
        namespace: &'static str,
        labels: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { group, kind, part: Some(Part { namespace, labels }) }
    }
}

/// Objects of one namespace with certain labels.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub(super) namespace: &'static str,
    pub(super) labels: &'static [(&'static str, &'static str)],
}

impl Part {
    pub(super) fn selector(&self) -> Selector {
        Selector::labels(self.labels.iter().copied())
    }

    /// Whether a list asks for exactly this part.
    fn is(&self, namespace: Option<&str>, selector: &Selector) -> bool {
        namespace == Some(self.namespace) && *selector == self.selector()
    }
}

/// How much of a kind a cache watches.
#[derive(Clone, Copy)]
pub(super) enum Coverage {
    Whole,
    Part(Part),
    Nothing,
}

impl Coverage {
    /// Whether such a list is answered from the watch.
    pub(super) fn answers(&self, namespace: Option<&str>, selector: &Selector) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(part) => part.is(namespace, selector),
            Self::Nothing => false,
        }
    }

    /// Whether the watch may have an object of that namespace.
    pub(super) fn may_hold(&self, namespace: &str) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(part) => part.namespace == namespace,
            Self::Nothing => false,
        }
    }
}

impl Scope {
    pub(super) fn of(&self, kind: &Kind) -> Coverage {
        match self {
            Self::Everything => Coverage::Whole,
            Self::Only(extents) => match extents.iter().find(|extent| kind.is(extent.group, extent.kind)) {
                Some(Extent { part: None, .. }) => Coverage::Whole,
                Some(Extent { part: Some(part), .. }) => Coverage::Part(*part),
                None => Coverage::Nothing,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_list_that_is_watched_is_answered_from_the_watch() {
        const SCOPE: Scope =
            Scope::Only(&[Extent::whole("", "Node"), Extent::part("", "Pod", "kube-system", &[("tier", "x")])]);
        let (node, pod) = (Kind::new("", "v1", "Node", "nodes", false), Kind::new("", "v1", "Pod", "pods", true));
        let tier = Selector::labels([("tier", "x")]);
        for (what, kind, namespace, selector, expected) in [
            ("whole kind", &node, None, Selector::everything(), true),
            ("the part", &pod, Some("kube-system"), tier.clone(), true),
            ("another namespace", &pod, Some("default"), tier.clone(), false),
            ("all namespaces", &pod, None, tier.clone(), false),
            ("more labels", &pod, Some("kube-system"), tier.clone().and_label("a", "b"), false),
            ("no labels", &pod, Some("kube-system"), Selector::everything(), false),
        ] {
            assert_eq!(SCOPE.of(kind).answers(namespace, &selector), expected, "{what}");
        }
        assert!(SCOPE.of(&pod).may_hold("kube-system") && !SCOPE.of(&pod).may_hold("default"));
        assert!(Scope::Everything.of(&pod).answers(None, &tier));
    }
}
