//! Random objects of a structural schema, from a seed.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Makes objects and remembers which paths of the schema took part.
pub struct Generator<'a> {
    pub random: Random,
    /// How likely an optional field is, in percent.
    pub density: usize,
    /// Whether empty objects, lists, texts and zeros are made where the schema allows them.
    pub empties: bool,
    pub covered: &'a mut BTreeSet<String>,
}

impl Generator<'_> {
    /// A whole object of `kind` in `version`.
    pub fn object(&mut self, kind: &Kind, version: &str) -> Value {
        let schema = &kind.versions.iter().find(|(name, _)| name == version).unwrap().1;
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), kind.api_version(version).into());
        object.insert("kind".to_owned(), kind.kind.clone().into());
        let mut metadata = json!({"name": "made", "uid": "0001", "labels": {"a": ""}});
        if kind.namespaced {
            metadata["namespace"] = "space".into();
        }
        if self.random.chance(50) {
            metadata["annotations"] = json!({"of": "a user"});
        }
        object.insert("metadata".to_owned(), metadata);
        for (name, schema) in schema["properties"].as_object().unwrap() {
            if !["apiVersion", "kind", "metadata"].contains(&name.as_str())
                && (name == "spec" || self.random.chance(90))
            {
                object.insert(name.clone(), self.value(schema, &format!(".{name}")));
            }
        }
        Value::Object(object)
    }

    pub fn value(&mut self, schema: &Value, at: &str) -> Value {
        self.covered.insert(at.to_owned());
        if schema["x-kubernetes-int-or-string"] == true {
            // A pattern here is that of a quantity.
            let text = if schema.get("pattern").is_some() { "250m" } else { "25%" };
            return if self.random.chance(50) { self.number(schema) } else { text.into() };
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.random.pick(values).clone();
        }
        match schema["type"].as_str() {
            None => self
                .random
                .pick(&[json!({}), json!([]), json!(""), json!(0), json!({"a": {"b": []}}), json!([{}]), json!("x")])
                .clone(),
            Some("boolean") => self.random.chance(50).into(),
            Some("integer" | "number") => self.number(schema),
            Some("string") => self.text(schema, at).into(),
            Some("array") => self.list(schema, at),
            Some("object") => self.map(schema, at),
            Some(other) => panic!("type {other}"),
        }
    }

    /// Numbers that every version allows.
    fn number(&mut self, schema: &Value) -> Value {
        let low = schema.get("minimum").and_then(Value::as_i64).unwrap_or(0);
        let number = if low == 0 && self.empties && self.random.chance(25) { 0 } else { 7 + self.random.below(93) };
        match schema.get("maximum").and_then(Value::as_u64) {
            Some(most) => number.min(most as usize).into(),
            None => number.into(),
        }
    }

    fn list(&mut self, schema: &Value, at: &str) -> Value {
        let least =
            schema.get("minItems").and_then(Value::as_u64).unwrap_or(u64::from(!self.empties || at.ends_with("[]")))
                as usize;
        let most = schema.get("maxItems").and_then(Value::as_u64).map_or(usize::MAX, |most| most as usize);
        let count = (least + self.random.below(3)).min(most);
        let keys: Vec<&str> = match schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
            Some(keys) => keys.iter().filter_map(Value::as_str).collect(),
            // Uniqueness by a CEL rule.
            None if schema["items"]["properties"].get("name").is_some() => vec!["name"],
            None => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        let mut items = Vec::new();
        for _ in 0..20 {
            if items.len() >= count {
                break;
            }
            let item = self.value(&schema["items"], &format!("{at}[]"));
            let id = if keys.is_empty() {
                format!("{}", seen.len())
            } else {
                keys.iter().map(|key| item[*key].to_string()).collect::<Vec<_>>().join(" ")
            };
            if seen.insert(id) {
                items.push(item);
            }
        }
        Value::Array(items)
    }

    fn map(&mut self, schema: &Value, at: &str) -> Value {
        let mut map = Map::new();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(u64::from(!self.empties)) as usize;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let mut names: Vec<&String> = properties.keys().collect();
            if let Some(most) = schema.get("maxProperties").and_then(Value::as_u64) {
                while names.len() > most as usize {
                    names.remove(self.random.below(names.len()));
                }
            }
            for (name, child) in properties.iter().filter(|(name, _)| names.contains(name)) {
                if required.contains(&name.as_str()) || self.random.chance(self.density) {
                    map.insert(name.clone(), self.value(child, &format!("{at}.{name}")));
                }
            }
            while map.len() < least.min(names.len()) {
                let name = *self.random.pick(&names);
                map.insert(name.clone(), self.value(&properties[name], &format!("{at}.{name}")));
            }
        } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            for _ in 0..least + self.random.below(3) {
                let key = self.word();
                map.insert(key, self.value(values, &format!("{at}{{}}")));
            }
        }
        Value::Object(map)
    }

    fn word(&mut self) -> String {
        format!("{}{}", self.random.pick(&["a", "key", "zone", "m"]), self.random.below(50))
    }

    fn text(&mut self, schema: &Value, at: &str) -> String {
        let field = at.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
        let old_duration = |name: &str| {
            (name.ends_with("Timeout") && name != "bootstrapTimeout")
                || ["timeout", "ttl", "minHealthyPeriod", "retryPeriod", "timeoutForControlPlane"].contains(&name)
        };
        if schema.get("format") == Some(&json!("date-time")) {
            return format!("20{:02}-03-01T10:00:{:02}Z", 10 + self.random.below(80), self.random.below(60));
        }
        if schema.get("format") == Some(&json!("byte")) {
            return (*self.random.pick(&["YQ==", "Y2VydA=="])).to_owned();
        }
        if old_duration(field) {
            let durations = ["10s", "1h30m", "1m30s", "90s", "1.5s", "250ms", "0s", "0", "2h0m0s", "876000h"];
            return (*self.random.pick(&durations)).to_owned();
        }
        if at.ends_with("conditions[].status") {
            return (*self.random.pick(&["True", "False", "Unknown"])).to_owned();
        }
        let fits = |text: &str| {
            let length = text.chars().count() as u64;
            schema.get("minLength").and_then(Value::as_u64).is_none_or(|low| length >= low)
                && schema.get("maxLength").and_then(Value::as_u64).is_none_or(|high| length <= high)
                && schema
                    .get("pattern")
                    .and_then(Value::as_str)
                    .is_none_or(|pattern| super::schema::matches(pattern, text))
        };
        let special = match field {
            "apiVersion" => Some("infrastructure.cluster.x-k8s.io/v1beta1"),
            "apiGroup" => Some("infrastructure.cluster.x-k8s.io"),
            "kind" => Some("DockerMachineTemplate"),
            _ => None,
        };
        // The parts of a reference are free text in v1beta1 alone.
        let is_reference = special.is_some() || field == "name";
        if let Some(special) = special.filter(|text| fits(text) && (field == "apiVersion" || self.random.chance(60))) {
            return special.to_owned();
        }
        if self.empties && !is_reference && fits("") && self.random.chance(15) {
            return String::new();
        }
        for _ in 0..200 {
            let word = self.word();
            let text = match self.random.below(5) {
                0 => format!("[{}-{}]", self.random.below(5), self.random.below(5)),
                1 => format!("{word}.example.com/v1beta{}", 1 + self.random.below(2)),
                2 => format!("https://{word}.example.com"),
                _ => word,
            };
            // Text with slashes and brackets only where a pattern asks for it.
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric());
            if fits(&text) && (plain || schema.get("pattern").is_some() || field == "apiVersion") {
                return text;
            }
        }
        panic!("no text for {at}: {schema}");
    }
}
