//! As much of `kubectl` as bootstrap commands use: `apply -f`, `create -f` and `get`. Everything else is refused with exit code 1.

use http::Method;
use serde_json::Value;

use crate::files::reason;
use crate::kubeadm::kubeconfig::Kubeconfig;
use crate::kubeadm::paths;
use crate::rest::{Rest, RestError};
use crate::shell::Invocation;

/// Runs `kubectl` and returns its exit code.
pub async fn run(call: &Invocation<'_>) -> i32 {
    match act(call).await {
        Ok(()) => 0,
        Err(problem) => {
            call.complain(format!("error: {problem}"));
            1
        }
    }
}

async fn act(call: &Invocation<'_>) -> Result<(), String> {
    let mut kubeconfig = call.environment.get("KUBECONFIG").cloned().unwrap_or_else(|| paths::ADMIN.to_owned());
    let (mut file, mut namespace, mut operands) = (None, None, Vec::new());
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| arguments.next().cloned())
                .ok_or_else(|| format!("flag needs an argument: {name}"))
        };
        match name {
            "--kubeconfig" => kubeconfig = value()?,
            "-f" | "--filename" => file = Some(value()?),
            "-n" | "--namespace" => namespace = Some(value()?),
            name if name.starts_with('-') => {
                return Err(format!("flag {name} is not supported on a capwasm simulated node"));
            }
            operand => operands.push(operand.to_owned()),
        }
    }
    let rest = Kubeconfig::load(call.node.files(), &call.path(&kubeconfig))?.client()?;
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    match (operands.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), file) {
        ([verb @ ("apply" | "create")], Some(file)) => {
            for object in documents(call, &file)? {
                write(call, &rest, &object, &namespace, *verb == "apply").await?;
            }
            Ok(())
        }
        (["get", resource, names @ ..], None) => get(call, &rest, resource, names, &namespace).await,
        (["version"], None) => {
            let version = rest.send(Method::GET, "/version", None).await.map_err(|error| error.to_string())?;
            call.say(format!("Server Version: {}", version["gitVersion"].as_str().unwrap_or_default()));
            Ok(())
        }
        (operands, _) => {
            Err(format!("{:?} is not supported by kubectl on a capwasm simulated node", operands.join(" ")))
        }
    }
}

fn documents(call: &Invocation<'_>, file: &str) -> Result<Vec<Value>, String> {
    let text = match file {
        "-" => String::from_utf8(call.streams.input.to_vec()).map_err(|error| error.to_string())?,
        url if url.starts_with("http://") || url.starts_with("https://") => {
            return Err(format!("unable to read URL {url:?}: a capwasm simulated node reads files only"));
        }
        path => call
            .node
            .files()
            .read_text(&call.path(path))
            .map_err(|error| format!("the path {path:?}: {}", reason(&error)))?,
    };
    let values: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| format!("error parsing {file}: {error}"))?;
    Ok(values.into_iter().filter(|value| !value.is_null()).collect())
}

/// Path of a kind's collection, asked from discovery.
async fn collection(rest: &Rest, version: &str, kind: &str, namespace: &str) -> Result<String, String> {
    let base = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let list = rest.send(Method::GET, &base, None).await.map_err(|error| error.to_string())?;
    let found = list["resources"].as_array().into_iter().flatten().find(|resource| {
        let names = [&resource["kind"], &resource["name"], &resource["singularName"]];
        let name = resource["name"].as_str().unwrap_or_default();
        !name.contains('/')
            && (names.iter().any(|name| name.as_str() == Some(kind))
                || resource["shortNames"]
                    .as_array()
                    .is_some_and(|short| short.iter().any(|name| name.as_str() == Some(kind))))
    });
    let resource = found.ok_or_else(|| format!("no matches for kind {kind:?} in version {version:?}"))?;
    let plural = resource["name"].as_str().unwrap_or_default();
    Ok(if resource["namespaced"] == true {
        format!("{base}/namespaces/{namespace}/{plural}")
    } else {
        format!("{base}/{plural}")
    })
}

async fn write(call: &Invocation<'_>, rest: &Rest, object: &Value, namespace: &str, apply: bool) -> Result<(), String> {
    let text = |value: &Value, what: &str| {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("error validating data: {what} not set"))
    };
    let (version, kind) = (text(&object["apiVersion"], "apiVersion")?, text(&object["kind"], "kind")?);
    let name = text(&object["metadata"]["name"], "metadata.name")?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
    let collection = collection(rest, &version, &kind, namespace).await?;
    let failed = |error: RestError| format!("unable to write {kind} {name:?}: {error}");
    if apply {
        let path = format!("{collection}/{name}?fieldManager=kubectl&force=true");
        rest.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).await.map_err(failed)?;
        call.say(format!("{}/{name} serverside-applied", kind.to_lowercase()));
    } else {
        rest.create(&collection, object).await.map_err(failed)?;
        call.say(format!("{}/{name} created", kind.to_lowercase()));
    }
    Ok(())
}

async fn get(
    call: &Invocation<'_>,
    rest: &Rest,
    resource: &str,
    names: &[&str],
    namespace: &str,
) -> Result<(), String> {
    let collection = collection(rest, "v1", resource, namespace).await?;
    let print = |object: &Value| call.say(object["metadata"]["name"].as_str().unwrap_or_default());
    if names.is_empty() {
        let list = rest.send(Method::GET, &collection, None).await.map_err(|error| error.to_string())?;
        list["items"].as_array().into_iter().flatten().for_each(print);
    }
    for name in names {
        print(&rest.send(Method::GET, &format!("{collection}/{name}"), None).await.map_err(|error| error.to_string())?);
    }
    Ok(())
}
