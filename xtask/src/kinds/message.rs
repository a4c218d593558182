//! The messages of the table: a line per field.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::go::{GoField, Modules};
use super::openapi::OpenApi;

/// Types whose form on the wire is their own, by OpenAPI name.
const SPECIAL: [(&str, &str); 9] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intOrString"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "microTime"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "fields"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "json"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray", "schemaOrArray"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool", "schemaOrBool"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray", "schemaOrStrings"),
];

/// Messages of which nothing is demanded although OpenAPI has it as required, besides conditions and statuses: a controller
/// writes them, or they are checked elsewhere.
const LENIENT: [&str; 6] = [
    "AttachedVolume",
    "ConfigMapNodeConfigSource",
    "CustomResourceDefinitionNames",
    "EndpointAddress",
    "NodeSystemInfo",
    "TokenReviewSpec",
];

/// What Kubernetes defaults in its code, so that OpenAPI has the field as required.
const DEFAULTED: [(&str, &str, &str); 1] = [("rbac.v1.RoleRef", "apiGroup", "rbac.authorization.k8s.io")];

/// Name of a component in the table, such as `apps.v1.DeploymentSpec`.
pub(super) fn short(component: &str) -> &str {
    let prefixes = ["io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions-apiserver.pkg.apis."];
    prefixes.iter().find_map(|prefix| component.strip_prefix(prefix)).unwrap_or(component)
}

/// Messages with everything that they contain.
pub(super) struct Messages<'a> {
    openapi: &'a OpenApi<'a>,
    modules: &'a Modules,
    packages: HashMap<String, HashMap<String, Vec<GoField>>>,
    /// By their name in the table; empty while fields are still being read.
    done: BTreeMap<String, String>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(openapi: &'a OpenApi<'a>, modules: &'a Modules) -> Self {
        Self { openapi, modules, packages: HashMap::new(), done: BTreeMap::new() }
    }

    /// Adds a component and what it contains.
    pub(super) fn add(&mut self, component: &str) -> Result<()> {
        let schema = self.openapi.schema(component).with_context(|| format!("no document has {component}"))?;
        self.add_as(component, schema)
    }

    /// As [`Messages::add`]; the schema is that of who embeds the struct where OpenAPI has none of its own.
    fn add_as(&mut self, component: &str, schema: &'a Value) -> Result<()> {
        let name = short(component).to_owned();
        if self.done.contains_key(&name) {
            return Ok(());
        }
        self.done.insert(name.clone(), String::new());
        let (package, ty) = component.rsplit_once('.').context("a component without a package")?;
        if !self.packages.contains_key(package) {
            self.packages.insert(package.to_owned(), self.modules.structs(package)?);
        }
        let mut fields = self.packages.get_mut(package).and_then(|types| types.remove(ty)).unwrap_or_default();
        fields.sort_by_key(|field| field.number);
        let own = self.openapi.schema(component).unwrap_or(&Value::Null);
        let mut text = format!("\nmessage {name}{}\n", flag(own["x-kubernetes-map-type"] == "atomic", " atomic"));
        for field in &fields {
            let line = self.field(&name, package, field, schema).with_context(|| format!("{name}: {}", field.name))?;
            writeln!(text, "{} {line}", field.number)?;
        }
        self.done.insert(name, text);
        Ok(())
    }

    fn field(&mut self, message: &str, package: &str, field: &GoField, schema: &'a Value) -> Result<String> {
        if field.name.is_empty() {
            ensure!(!field.ty.contains('.'), "a struct of another package is embedded");
            let component = format!("{package}.{}", field.ty);
            self.add_as(&component, self.openapi.schema(&component).unwrap_or(schema))?;
            return Ok(format!("- +{}", short(&component)));
        }
        let property = schema["properties"].get(&field.name).context("OpenAPI has no such property")?;
        let values = property.get("additionalProperties");
        let (shape, ty) = match (property["type"].as_str(), values) {
            (Some("array"), _) => ("[]", self.ty(&property["items"])?),
            (_, Some(values)) if values["type"] == "array" => ("{}", "strings".to_owned()),
            (_, Some(values)) => ("{}", self.ty(values)?),
            _ if field.ty.starts_with('*') => ("*", self.ty(property)?),
            _ => ("", self.ty(property)?),
        };
        let mut line = format!("{} {shape}{ty}", field.name);
        let text = |name: &str| property[name].as_str().unwrap_or_default();
        let default = match &property["default"] {
            Value::String(text) if !text.is_empty() => Some(text.as_str()),
            _ => DEFAULTED.iter().find(|(of, name, _)| *of == message && *name == field.name).map(|(.., text)| *text),
        };
        let scalar = matches!(ty.as_str(), "string" | "bool" | "int32" | "int64" | "double" | "bytes" | "intOrString");
        let stated = !field.omitted && default.is_none();
        line += flag(stated && shape.is_empty() && scalar, " kept");
        let (_, own_name) = message.rsplit_once('.').unwrap_or_default();
        let lenient = own_name.ends_with("Condition") || own_name.ends_with("Status") || LENIENT.contains(&own_name);
        let listed = schema["required"].as_array().is_some_and(|names| names.iter().any(|name| *name == *field.name));
        let checked = shape == "*" || shape.is_empty() && ty == "string";
        line += flag(listed && checked && !lenient && default.is_none(), " required");
        match text("x-kubernetes-list-type") {
            "set" => line += " set",
            "map" => {
                let keys = property["x-kubernetes-list-map-keys"].as_array().context("a keyed list without keys")?;
                let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
                write!(line, " keyed={}", keys.join(","))?;
            }
            _ => {}
        }
        line += flag(text("x-kubernetes-map-type") == "atomic", " atomic");
        for strategy in text("x-kubernetes-patch-strategy").split(',').filter(|strategy| !strategy.is_empty()) {
            match strategy {
                "merge" => write!(line, " merge={}", text("x-kubernetes-patch-merge-key"))?,
                "retainKeys" => line += " retainKeys",
                "replace" => {}
                other => bail!("{other} is no known patch strategy"),
            }
        }
        if let Some(default) = default {
            ensure!(!default.contains(char::is_whitespace), "a default with a space does not fit into the table");
            write!(line, " default={default}")?;
        }
        Ok(line)
    }

    fn ty(&mut self, schema: &'a Value) -> Result<String> {
        let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
        if let Some(component) = reference.and_then(|reference| reference.strip_prefix("#/components/schemas/")) {
            if let Some((_, special)) = SPECIAL.iter().find(|(name, _)| *name == component) {
                return Ok((*special).to_owned());
            }
            self.add(component)?;
            return Ok(short(component).to_owned());
        }
        Ok(match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("string"), None) => "string",
            (Some("string"), Some("byte")) => "bytes",
            (Some("boolean"), None) => "bool",
            (Some("integer"), Some("int32")) => "int32",
            (Some("integer"), Some("int64")) => "int64",
            (Some("number"), Some("double")) => "double",
            other => bail!("{other:?} is no known type"),
        }
        .to_owned())
    }

    /// The messages as text, by name.
    pub(super) fn finish(self) -> Result<String> {
        ensure!(self.done.len() > 250, "only {} messages were found", self.done.len());
        Ok(self.done.into_values().collect())
    }
}

fn flag(set: bool, text: &str) -> &str {
    if set { text } else { "" }
}
