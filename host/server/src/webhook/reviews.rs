//! Handles ConversionReview and AdmissionReview.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_apiserver::{ConversionError, ConvertedKind, Converter};
use capwasm_object::{json, meta};
use capwasm_providers::{Conversions, NotAdmitted};
use serde_json::{Value, json};

use super::configuration::Kind;
use crate::conversion::InProcess;

/// Objects converted in one call of a provider.
const BATCH: usize = 100;

/// Bytes of a conversion's answer.
const ANSWER: usize = 128 << 20;

/// Answers reviews, each on a thread of its own: their objects are large at times.
#[derive(Clone)]
pub struct Reviews {
    converter: Arc<InProcess>,
    providers: Arc<Conversions>,
}

impl Reviews {
    /// By core, and by the components that are loaded into `providers`, now or later.
    pub fn new(providers: Arc<Conversions>) -> Self {
        Reviews { converter: Arc::new(InProcess::new(providers.clone())), providers }
    }

    /// The provider that a review is for; empty for the core's kinds and unknown ones.
    pub fn provider(&self, review: &Value) -> String {
        let request = &review["request"];
        let converted = &request["objects"][0];
        let (group, kind) = match converted {
            Value::Null => {
                let text = |pointer| json::text(request, pointer).unwrap_or_default();
                (text("/kind/group"), text("/kind/kind"))
            }
            object => (meta::group(object), meta::kind(object)),
        };
        self.providers.provider_of(group, kind).unwrap_or_default()
    }

    /// The text of the answer to a ConversionReview.
    ///
    /// # Errors
    /// When it is none.
    pub async fn convert(&self, mut review: Value) -> Result<String> {
        let converter = self.converter.clone();
        let answer = move || {
            let mut request = request(&mut review)?;
            let to = json::text(&request, "/desiredAPIVersion").context("it has no desiredAPIVersion")?.to_owned();
            let objects = match request["objects"].take() {
                Value::Array(objects) => objects,
                _ => return Err(anyhow!("it has no objects")),
            };
            let (result, converted) = match convert(&converter, objects, &to) {
                Ok(converted) => (json!({"status": "Success"}), converted),
                Err(error) => (json!({"status": "Failure", "message": error.to_string()}), String::new()),
            };
            let (uid, version, kind) = (&request["uid"], &review["apiVersion"], &review["kind"]);
            let response = format!(r#"{{"uid":{uid},"result":{result},"convertedObjects":[{converted}]}}"#);
            Ok(format!(r#"{{"apiVersion":{version},"kind":{kind},"response":{response}}}"#))
        };
        // It blocks while a provider is asked.
        tokio::task::spawn_blocking(answer).await.context("the conversion panicked")?
    }

    /// The text of the answer to an AdmissionReview.
    ///
    /// # Errors
    /// When it is none.
    pub async fn admit(&self, kind: Kind, review: Value) -> Result<String> {
        let (reviews, here) = (self.clone(), tokio::runtime::Handle::current());
        let answer = move || here.block_on(reviews.admitted(kind, review)).map(|answer| answer.to_string());
        tokio::task::spawn_blocking(answer).await.context("the admission panicked")?
    }

    async fn admitted(&self, kind: Kind, mut review: Value) -> Result<Value> {
        let mut request = request(&mut review)?;
        let (object, old) = (request["object"].take(), request["oldObject"].take());
        if !object.is_object() {
            return Err(anyhow!("it has no object"));
        }
        let old = old.is_object().then_some(old);
        let response = match kind {
            Kind::Mutating => self.default(object, old.as_ref()).await,
            Kind::Validating => self.validate(&object, old.as_ref()).await,
        };
        let mut response = response.unwrap_or_else(|error| refused(&request, &error));
        response["uid"] = request["uid"].clone();
        Ok(json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}))
    }

    async fn default(&self, object: Value, old: Option<&Value>) -> Result<Value, NotAdmitted> {
        let changed = self.providers.admissions().with_defaults(object.clone(), old).await?;
        if changed == object {
            return Ok(json!({"allowed": true}));
        }
        let patch = serde_json::to_string(&json_patch::diff(&object, &changed))
            .map_err(|error| NotAdmitted::Failed(error.to_string()))?;
        Ok(json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)}))
    }

    async fn validate(&self, object: &Value, old: Option<&Value>) -> Result<Value, NotAdmitted> {
        let warnings = self.providers.admissions().validate(object, old).await?;
        Ok(json!({"allowed": true, "warnings": warnings}))
    }
}

fn request(review: &mut Value) -> Result<Value> {
    let request = review["request"].take();
    if request["uid"].is_string() { Ok(request) } else { Err(anyhow!("it has no request with a uid")) }
}

/// Converts objects of one CRD in order: their texts, with commas between them. Of one batch at a time there are trees.
fn convert(converter: &InProcess, objects: Vec<Value>, to: &str) -> Result<String, ConversionError> {
    let group = to.split_once('/').map_or("", |(group, _)| group).to_owned();
    let kind = objects.first().map(meta::kind).unwrap_or_default().to_owned();
    let kind = ConvertedKind { group, kind, labels: BTreeMap::new() };
    let mut texts = String::new();
    let mut objects = objects.into_iter().peekable();
    while objects.peek().is_some() {
        for object in converter.convert(&kind, objects.by_ref().take(BATCH).collect(), to)? {
            if !texts.is_empty() {
                texts.push(',');
            }
            texts.push_str(&object.to_string());
            if texts.len() > ANSWER {
                return Err(ConversionError::Failed(format!("the converted objects are larger than {ANSWER} bytes")));
            }
        }
    }
    Ok(texts)
}

/// The API server prefixes the message with "admission webhook … denied the request".
fn refused(request: &Value, error: &NotAdmitted) -> Value {
    let (code, reason) = match error {
        NotAdmitted::Invalid { .. } => (422, "Invalid"),
        NotAdmitted::Forbidden(_) => (403, "Forbidden"),
        NotAdmitted::NotLoaded(_) => (503, "ServiceUnavailable"),
        NotAdmitted::Failed(_) => (500, "InternalError"),
    };
    let mut details = json!({
        "group": request["kind"]["group"], "kind": request["kind"]["kind"], "name": request["name"],
    });
    match error {
        NotAdmitted::Invalid { reason, message } => {
            details["causes"] = json!([{"reason": reason, "message": message}]);
        }
        NotAdmitted::NotLoaded(_) => details["retryAfterSeconds"] = json!(1),
        NotAdmitted::Forbidden(_) | NotAdmitted::Failed(_) => {}
    }
    let status = json!({
        "status": "Failure", "code": code, "reason": reason, "message": error.to_string(), "details": details,
    });
    json!({"allowed": false, "status": status})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::testing::{GROUP, world};

    fn review(kind: &str, request: Value) -> Value {
        json!({"apiVersion": "x/v1", "kind": kind, "request": request})
    }

    fn pool(admit: &str, zone: &str) -> Value {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixturePool",
            "metadata": {"name": "p", "annotations": {"fixture.example/admit": admit}},
            "spec": {"placement": {"zone": zone}}})
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conversions_answer_every_object_or_say_why_not() {
        let world = world().await;
        let reviews = Reviews::new(world.conversions.clone());
        let of = |to: String, objects: Vec<Value>| {
            review("ConversionReview", json!({"uid": "u", "desiredAPIVersion": to, "objects": objects}))
        };
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
            "spec": {"paused": true}});
        let convert =
            async |review| -> Value { serde_json::from_str(&reviews.convert(review).await.unwrap()).unwrap() };
        let answer = convert(of("cluster.x-k8s.io/v1beta1".into(), vec![cluster])).await;
        assert_eq!((&answer["kind"], &answer["response"]["uid"]), (&json!("ConversionReview"), &json!("u")));
        assert_eq!(answer["response"]["convertedObjects"][0]["apiVersion"], "cluster.x-k8s.io/v1beta1");

        let pools = || of(format!("{GROUP}/v1beta1"), vec![pool("", "a"); BATCH + 1]);
        let refused = convert(pools()).await;
        assert_eq!(refused["response"]["result"]["status"], "Failure");
        assert!(refused.to_string().contains("is loaded"), "{refused}");
        assert_eq!(reviews.provider(&pools()), "", "nobody's as yet");
        world.conversions.serve(&world.provider);
        assert_eq!(reviews.provider(&pools()), "fixture");
        let admission = json!({"request": {"kind": {"group": GROUP, "kind": "FixturePool"}}});
        assert_eq!(reviews.provider(&admission), "fixture");
        let answer = convert(pools()).await;
        let objects = answer["response"]["convertedObjects"].as_array().unwrap();
        assert_eq!((objects.len(), &objects[BATCH]["spec"]), (BATCH + 1, &json!({"zone": "a"})));
        assert!(reviews.convert(json!({"request": {"uid": "u"}})).await.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn admissions_answer_patches_warnings_and_statuses() {
        let world = world().await;
        world.conversions.serve(&world.provider);
        let reviews = Reviews::new(world.conversions.clone());
        let ask = async |kind: Kind, object: Value, old: Value| {
            let request = json!({"uid": "u", "name": "p", "kind": {"group": GROUP, "kind": "FixturePool"},
                "object": object, "oldObject": old});
            let answer = reviews.admit(kind, review("AdmissionReview", request)).await.unwrap();
            serde_json::from_str::<Value>(&answer).unwrap()["response"].take()
        };
        let mut bare = pool("zone", "");
        bare["spec"] = json!({});
        let answer = ask(Kind::Mutating, bare, Value::Null).await;
        let patch: Value =
            serde_json::from_slice(&STANDARD.decode(answer["patch"].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/spec/placement", "value": {"zone": "z"}}]));
        assert_eq!(ask(Kind::Mutating, pool("zone", "a"), Value::Null).await, json!({"uid": "u", "allowed": true}));
        let warned = ask(Kind::Validating, pool("warn", "a"), Value::Null).await;
        assert_eq!((&warned["allowed"], warned["warnings"].as_array().unwrap().len()), (&json!(true), 2));
        let refused = ask(Kind::Validating, pool("zone", "b"), pool("", "a")).await;
        assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(422)));
        assert_eq!(refused["status"]["details"]["causes"][0]["reason"], "ZoneImmutable");
        assert_eq!(ask(Kind::Mutating, pool("panic", "a"), Value::Null).await["status"]["code"], 500);
        assert!(reviews.admit(Kind::Validating, json!({"request": {"uid": "u"}})).await.is_err());
    }
}
