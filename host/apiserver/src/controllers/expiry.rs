//! Deletes Events that are older than their time to live.

use capwasm_object::meta;
use jiff::Timestamp;
use serde_json::Value;

use crate::registry::{DeleteOptions, ListRequest, Locator, Registry, parse};
use crate::status::ApiResult;

/// The latest of the times in an Event.
fn last_seen(event: &Value) -> Option<Timestamp> {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    times.iter().filter_map(|pointer| event.pointer(pointer)?.as_str()?.parse::<Timestamp>().ok()).max()
}

pub(super) async fn reconcile(registry: &Registry) -> ApiResult<()> {
    let events = registry.in_store("", "events")?;
    let page = registry.list_now(&events, &ListRequest::default())?;
    let ttl = i64::try_from(registry.config.event_ttl.as_secs()).unwrap_or(i64::MAX);
    let oldest = registry.config.clock.now().as_second().saturating_sub(ttl);
    for (key, data) in page.items {
        let event = parse(&data)?;
        if last_seen(&event).is_some_and(|seen| seen.as_second() >= oldest) {
            continue;
        }
        let options = DeleteOptions { uid: Some(meta::uid(&event).to_owned()), ..DeleteOptions::default() };
        match registry.delete(&Locator::new(&events, key.namespace(), key.name()), &options).await {
            Err(error) if !matches!(error.code, 404 | 409) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
