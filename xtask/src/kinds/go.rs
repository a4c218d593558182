//! Go modules, and the structs in their sources.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build;

/// Modules that hold the types of the built-in kinds: prefix of their OpenAPI names, and module.
const MODULES: [(&str, &str); 3] = [
    ("io.k8s.api.", "k8s.io/api"),
    ("io.k8s.apimachinery.", "k8s.io/apimachinery"),
    ("io.k8s.apiextensions-apiserver.", "k8s.io/apiextensions-apiserver"),
];

/// Sources of Kubernetes, in Go's module cache.
pub(super) struct Modules {
    version: String,
    kubernetes: PathBuf,
    types: Vec<(&'static str, PathBuf)>,
}

impl Modules {
    /// Of the version that the tests build their control plane of.
    pub(super) fn download() -> Result<Self> {
        let file = build::root().join("tests/kubeadm/v1.36/go.mod");
        let required = std::fs::read_to_string(&file).with_context(|| format!("unable to read {}", file.display()))?;
        let version = |module: &str| {
            let mut lines = required.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let found = lines.find_map(|line| (line.first() == Some(&module)).then(|| line.get(1).copied())?);
            found.map(str::to_owned).with_context(|| format!("{} does not require {module}", file.display()))
        };
        let kubernetes = version("k8s.io/kubernetes")?;
        let types = version("k8s.io/api")?;
        Ok(Self {
            kubernetes: folder("k8s.io/kubernetes", &kubernetes)?,
            types: MODULES
                .iter()
                .map(|(prefix, module)| Ok((*prefix, folder(module, &types)?)))
                .collect::<Result<_>>()?,
            version: kubernetes,
        })
    }

    /// Version of `k8s.io/kubernetes`, such as `v1.36.3`.
    pub(super) fn kubernetes(&self) -> &str {
        &self.version
    }

    /// An OpenAPI document, such as `apis__apps__v1`.
    pub(super) fn openapi(&self, name: &str) -> Result<Value> {
        let file = self.kubernetes.join(format!("api/openapi-spec/v3/{name}_openapi.json"));
        let text = std::fs::read(&file).with_context(|| format!("unable to read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", file.display()))
    }

    /// The structs of the package `io.k8s.api.apps.v1`, by name.
    pub(super) fn structs(&self, package: &str) -> Result<HashMap<String, Vec<GoField>>> {
        let found = self.types.iter().find_map(|(prefix, folder)| Some((folder, package.strip_prefix(prefix)?)));
        let (folder, path) = found.with_context(|| format!("{package} is in no known module"))?;
        let mut structs = HashMap::new();
        let folder = folder.join(path.replace('.', "/"));
        for file in std::fs::read_dir(&folder).with_context(|| format!("unable to read {}", folder.display()))? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "go") {
                read_structs(&std::fs::read_to_string(&file)?, &mut structs)?;
            }
        }
        Ok(structs)
    }
}

fn folder(module: &str, version: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("{module}@{version}")])
        .current_dir(std::env::temp_dir())
        .output()
        .context("unable to start go")?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match answer["Dir"].as_str() {
        Some(folder) if output.status.success() => Ok(Path::new(folder).to_path_buf()),
        _ => bail!("unable to download {module}@{version}: {answer}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// A field of a Go struct that has a number on the wire.
pub(super) struct GoField {
    /// Type as written, such as `*int32`.
    pub(super) ty: String,
    /// JSON name; empty for a struct whose fields stand in this one's JSON object.
    pub(super) name: String,
    /// Its zero value is left out of JSON.
    pub(super) omitted: bool,
    pub(super) number: u32,
}

/// Adds the structs of a source file that `gofmt` has written.
fn read_structs(source: &str, structs: &mut HashMap<String, Vec<GoField>>) -> Result<()> {
    let mut open: Option<(String, Vec<GoField>)> = None;
    for line in source.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            open = Some((name.to_owned(), Vec::new()));
        } else if line.starts_with('}') {
            structs.extend(open.take());
        } else if let Some((name, fields)) = &mut open {
            fields.extend(field(line).with_context(|| format!("{name}: {line}"))?);
        }
    }
    Ok(())
}

/// A line such as ``Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"` ``.
fn field(line: &str) -> Result<Option<GoField>> {
    let Some((declared, tags)) = line.split_once('`').filter(|(declared, _)| !declared.contains("//")) else {
        return Ok(None);
    };
    let tag = |name: &str| Some(tags.split_once(&format!("{name}:\""))?.1.split_once('"')?.0);
    let Some(wire) = tag("protobuf").filter(|wire| *wire != "-") else { return Ok(None) };
    let number = wire.split(',').nth(1).context("no number")?.parse().context("the number is none")?;
    // Without one it is of a type that has a JSON form of its own, such as a time.
    let Some(json) = tag("json") else { return Ok(None) };
    let mut json = json.split(',');
    let name = json.next().unwrap_or_default().to_owned();
    let ty = declared.split_whitespace().last().context("no type")?.to_owned();
    Ok(Some(GoField { ty, name, omitted: json.any(|option| option == "omitempty"), number }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn fields_are_read_from_their_tags() {
        let source = r#"
// A comment with `ticks`.
type Spec struct {
	metav1.TypeMeta `json:",inline"`
	// `ticks` in a comment
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	Inner `json:",inline" protobuf:"bytes,12,opt,name=inner"`
	// +patchStrategy=merge
	Ports []Port `json:"ports" patchStrategy:"merge" patchMergeKey:"port" protobuf:"bytes,3,rep,name=ports"`
}

type Text string
"#;
        let mut structs = HashMap::new();
        read_structs(source, &mut structs).unwrap();
        let fields: Vec<_> =
            structs["Spec"].iter().map(|f| (f.ty.as_str(), f.name.as_str(), f.omitted, f.number)).collect();
        assert_eq!(fields, [("*int32", "replicas", true, 1), ("Inner", "", false, 12), ("[]Port", "ports", false, 3)]);
        assert_eq!(structs.len(), 1);
    }
}
