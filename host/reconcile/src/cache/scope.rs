//! What of a server's objects a cache watches: everything that is read, or only some kinds, or a part of a kind.

use crate::{kind::Kind, selector::Selector};

/// What is cached at all.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// Every kind that is read.
    Everything,
    /// Only this; all else is read live, and a read of it wakes nobody. A kind stands here once.
    Only(&'static [Extent]),
}

/// How much of a kind is cached.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// All of its objects, or one namespace's with these labels.
    pub part: Option<Part>,
}

impl Extent {
    /// All objects of a kind.
    pub const fn whole(group: &'static str, kind: &'static str) -> Self {
        Self { group, kind, part: None }
    }

    /// The objects of one namespace that carry these labels. A list with exactly these labels is answered from the watch.
    pub const fn part(
        group: &'static str,
        kind: &'static str,
        namespace: &'static str,
        labels: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { group, kind, part: Some(Part { namespace, labels }) }
    }
}

/// Some objects of a namespaced kind.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub(super) namespace: &'static str,
    pub(super) labels: &'static [(&'static str, &'static str)],
}

impl Part {
    pub(super) fn selector(&self) -> Selector {
        Selector::labels(self.labels.iter().copied())
    }

    /// Whether a list asks for just this part.
    fn is(&self, namespace: Option<&str>, selector: &Selector) -> bool {
        namespace == Some(self.namespace) && *selector == self.selector()
    }
}

/// What a cache knows of a kind.
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

    /// Whether an object of that namespace may be among what is watched.
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
