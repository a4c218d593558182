//! `{id} | {filter}`: how specs name resources of OpenStack.

use capwasm_sdk::Problem;
use serde_json::Value;

use crate::cloud::Query;

/// One resource, or those that a filter finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Id(String),
    /// By what it is like.
    Filter(Filter),
}

/// What a resource is like: the object below `filter`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Value);

/// Fields of filters of networks, subnets, routers and security groups, and Neutron's words for them.
const NETWORK_FIELDS: [(&str, &str); 12] = [
    ("name", "name"),
    ("description", "description"),
    ("projectID", "project_id"),
    ("tags", "tags"),
    ("tagsAny", "tags-any"),
    ("notTags", "not-tags"),
    ("notTagsAny", "not-tags-any"),
    ("ipVersion", "ip_version"),
    ("gatewayIP", "gateway_ip"),
    ("cidr", "cidr"),
    ("ipv6AddressMode", "ipv6_address_mode"),
    ("ipv6RAMode", "ipv6_ra_mode"),
];

impl Param {
    /// From a field of a spec (`path` for messages); `Null` and `{}` name nothing.
    ///
    /// # Errors
    /// Invalid: both or neither of `id` and `filter` in an object that says more.
    pub fn read(value: &Value, path: &str) -> Result<Option<Param>, Problem> {
        let id = value.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let filter = value.get("filter").filter(|filter| filter.as_object().is_some_and(|fields| !fields.is_empty()));
        match (id, filter) {
            (Some(_), Some(_)) => {
                Err(Problem::invalid("InvalidReference", format!("{path}: use id or filter, not both")))
            }
            (Some(id), None) => Ok(Some(Param::Id(id.to_owned()))),
            (None, Some(filter)) => Ok(Some(Param::Filter(Filter(filter.clone())))),
            (None, None) => Ok(None),
        }
    }
}

impl Filter {
    /// For networks, subnets, routers and security groups; lists of tags joined by commas, as Neutron takes them.
    pub fn network_query(&self) -> Query {
        NETWORK_FIELDS.iter().fold(Query::new(), |query, (field, word)| match self.0.get(*field) {
            Some(Value::String(text)) if !text.is_empty() => query.with(word, text),
            Some(Value::Number(number)) => query.with(word, number.to_string()),
            Some(Value::Array(items)) if !items.is_empty() => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                query.with(word, items.join(","))
            }
            _ => query,
        })
    }

    /// For images: a name and any number of tags, all of which have to be there.
    pub fn image_query(&self) -> Query {
        let query = self.name().map_or_else(Query::new, |name| Query::new().with("name", name));
        let tags = self.0.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        tags.fold(query, |query, tag| query.with("tag", tag))
    }

    /// The name, where the filter has one: server groups and flavors can be filtered by nothing else, and not by the service.
    pub fn name(&self) -> Option<&str> {
        self.0.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_becomes_the_services_own_query() {
        let filter = |fields: Value| match Param::read(&json!({"filter": fields}), "spec.x").unwrap() {
            Some(Param::Filter(filter)) => filter,
            other => panic!("{other:?}"),
        };
        let subnet =
            filter(json!({"name": "a b", "projectID": "p", "tags": ["x", "y"], "notTagsAny": ["z"], "ipVersion": 4}));
        let query = subnet.network_query().after("/subnets");
        assert_eq!(query, "/subnets?name=a%20b&project_id=p&tags=x%2Cy&not-tags-any=z&ip_version=4");
        let image = filter(json!({"name": "node", "tags": ["x", "y"]})).image_query().after("/images");
        assert_eq!(image, "/images?name=node&tag=x&tag=y");
    }

    #[test]
    fn a_reference_names_one_thing_in_one_way() {
        assert_eq!(Param::read(&json!({"id": "i"}), "x").unwrap(), Some(Param::Id("i".to_owned())));
        assert_eq!(Param::read(&json!({}), "x").unwrap(), None);
        let both = Param::read(&json!({"id": "i", "filter": {"name": "n"}}), "spec.network").unwrap_err();
        assert!(both.message.contains("spec.network"), "{both}");
    }
}
