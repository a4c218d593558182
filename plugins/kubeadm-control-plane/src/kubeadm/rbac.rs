//! Permissions that kubeadm's `init` gives to those who join, should an older kubeadm not have given them: reading the two
//! ConfigMaps, finding a namesake among the Nodes, and, since 1.29, administrators as a group that can be taken away.

use capwasm_sdk::Problem;
use serde_json::Value;

/// The objects. As text, because building them would be several times as much code.
pub fn wanted() -> Result<Vec<Value>, Problem> {
    serde_json::from_str(include_str!("rbac.json"))
        .map_err(|error| Problem::terminal("InternalError", format!("permissions: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::object;

    #[test]
    fn every_permission_is_bound_and_every_object_is_named_once() {
        let objects = wanted().unwrap();
        let mut names: Vec<_> = objects.iter().map(|it| (object::text(it, "/kind"), object::name(it))).collect();
        for binding in
            objects.iter().filter(|it| it.get("roleRef").is_some() && object::name(it) != "kubeadm:cluster-admins")
        {
            let role = (object::text(binding, "/roleRef/kind"), object::text(binding, "/roleRef/name"));
            assert!(names.contains(&role), "{role:?}");
        }
        let there = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((there, names.len()), (7, 7));
    }
}
