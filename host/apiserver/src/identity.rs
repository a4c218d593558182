//! Identity of the sender of a request.

/// A user as authentication established it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name; of a client certificate its common name.
    pub user: String,
    /// Groups; of a client certificate its organisations.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in groups. `system:authenticated` is added unless the identity is anonymous.
    #[must_use]
    pub fn new(user: impl Into<String>, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        let implied = if groups.iter().any(|g| g == UNAUTHENTICATED) { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|group| group == implied) {
            groups.push(implied.to_owned());
        }
        Self { user: user.into(), groups }
    }

    /// A user in `system:masters`.
    #[must_use]
    pub fn admin(user: impl Into<String>) -> Self {
        Self::new(user, &[MASTERS])
    }

    /// `system:anonymous`, for requests without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &[UNAUTHENTICATED])
    }

    /// Whether the user is in `group`.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

pub(crate) const MASTERS: &str = "system:masters";
pub(crate) const NODES: &str = "system:nodes";
pub(crate) const BOOTSTRAPPERS: &str = "system:bootstrappers";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
