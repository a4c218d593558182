//! Recent responses, for the option `recent`: in memory, bounded, one set per generation of a provider.
//!
//! A response may contain credentials (a token in a header), so there is no `Debug`, and requests are kept as digests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use super::tls::Trust;
use super::{HttpRequest, HttpResponse};

/// Responses kept at most.
const ANSWERS: usize = 256;
/// Bytes of all responses kept.
const BYTES: usize = 4 << 20;
/// Bytes of one response; larger ones are not kept.
const ANSWER_BYTES: usize = 512 << 10;

/// Digest of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// Digest of method, URL, headers in order, body and trust. Each part is prefixed by its length, so that different
    /// requests have different digests.
    pub(super) fn of(request: &HttpRequest, trust: &Trust) -> Key {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(request.method.as_bytes());
        part(request.url.as_bytes());
        part(&request.body);
        part(&trust.identity());
        for (name, value) in &request.headers {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        Key(hash.finalize().into())
    }
}

struct Kept {
    key: Key,
    at: Instant,
    bytes: usize,
    answer: HttpResponse,
}

/// Responses of one generation, latest last.
#[derive(Default)]
pub(super) struct Recent {
    kept: Mutex<VecDeque<Kept>>,
    asking: Mutex<HashMap<Key, Arc<Turns<()>>>>,
}

impl Recent {
    /// A response that is at most `max_age` old at `now`; none with a zero age.
    pub(super) fn get(&self, key: &Key, now: Instant, max_age: Duration) -> Option<HttpResponse> {
        let kept = self.kept.lock();
        let found = kept.iter().find(|kept| kept.key == *key)?;
        let young = !max_age.is_zero() && now.saturating_duration_since(found.at) <= max_age;
        young.then(|| found.answer.clone())
    }

    /// Keeps a successful response; drops the oldest beyond the bounds.
    pub(super) fn put(&self, key: Key, at: Instant, answer: &HttpResponse) {
        let mut kept = self.kept.lock();
        kept.retain(|known| known.key != key);
        let headers: usize = answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = answer.body.len() + headers;
        if !(200..300).contains(&answer.status) || bytes > ANSWER_BYTES {
            return;
        }
        kept.push_back(Kept { key, at, bytes, answer: answer.clone() });
        let mut total: usize = kept.iter().map(|known| known.bytes).sum();
        while kept.len() > ANSWERS || total > BYTES {
            total -= kept.pop_front().map_or(total, |oldest| oldest.bytes);
        }
    }

    /// Waits until no equal request is in flight.
    pub(super) async fn turn(&self, key: Key) -> Turn<'_> {
        let turns = self.asking.lock().entry(key).or_default().clone();
        // Made before waiting, so that a caller that is dropped while it waits leaves nothing behind either.
        let mut turn = Turn { recent: self, key, guard: None };
        turn.guard = Some(turns.lock_owned().await);
        turn
    }
}

/// Permission to send a request.
pub(super) struct Turn<'a> {
    recent: &'a Recent,
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut asking = self.recent.asking.lock();
        // Only the map's own reference is left: nobody waits. References are only taken under this lock.
        if asking.get(&self.key).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            asking.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use bytes::Bytes;

    use super::*;

    fn request() -> HttpRequest {
        HttpRequest {
            method: "POST".into(),
            url: "https://cloud/v3/auth/tokens".into(),
            headers: vec![("a".into(), "b".into())],
            body: Bytes::from_static(b"password"),
            deadline: None,
        }
    }

    fn answer(status: u16, bytes: usize) -> HttpResponse {
        HttpResponse { status, headers: Vec::new(), body: vec![b'x'; bytes].into() }
    }

    fn key(number: usize) -> Key {
        Key::of(&HttpRequest { url: number.to_string(), ..request() }, &Trust::default())
    }

    #[test]
    fn requests_are_the_same_only_when_every_part_is() {
        let same = Key::of(&request(), &Trust::default());
        let later = HttpRequest { deadline: Some(Duration::from_secs(1)), ..request() };
        assert!(same == Key::of(&later, &Trust::default()), "a deadline changes nothing of the answer");
        let mut unverified = Trust::default();
        unverified.do_not_verify();
        let header = |name: &str, value: &str| HttpRequest { headers: vec![(name.into(), value.into())], ..request() };
        let rows = [
            ("method", HttpRequest { method: "PUT".into(), ..request() }, Trust::default()),
            ("url", HttpRequest { url: "https://other/v3/auth/tokens".into(), ..request() }, Trust::default()),
            ("body", HttpRequest { body: Bytes::from_static(b"another"), ..request() }, Trust::default()),
            ("header", header("a", "c"), Trust::default()),
            ("where a header begins", header("ab", ""), Trust::default()),
            ("no header", HttpRequest { headers: Vec::new(), ..request() }, Trust::default()),
            ("trust", request(), Trust::of([1; 32])),
            ("no verification", request(), unverified),
        ];
        for (name, other, trust) in rows {
            assert!(same != Key::of(&other, &trust), "{name}");
        }
    }

    #[test]
    fn an_answer_does_until_it_is_too_old_and_a_zero_age_never() {
        let (recent, start) = (Recent::default(), Instant::now());
        let second = Duration::from_secs(1);
        recent.put(key(1), start, &answer(201, 1));
        assert!(recent.get(&key(1), start + second, second).is_some());
        assert!(recent.get(&key(1), start + second + Duration::from_nanos(1), second).is_none());
        assert!(recent.get(&key(1), start, Duration::ZERO).is_none());
        assert!(recent.get(&key(2), start, second).is_none());
        recent.put(key(1), start, &answer(200, 2));
        assert_eq!(recent.get(&key(1), start, second).unwrap().status, 200, "the latest");
        recent.put(key(1), start, &answer(401, 1));
        assert!(recent.get(&key(1), start, second).is_none(), "what was refused since does no more");
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_bytes_and_the_oldest_goes_first() {
        let (recent, now, age) = (Recent::default(), Instant::now(), Duration::from_secs(1));
        for number in 0..=ANSWERS {
            recent.put(key(number), now, &answer(200, 1));
        }
        assert!(recent.get(&key(0), now, age).is_none() && recent.get(&key(1), now, age).is_some());
        recent.put(key(9_999), now, &answer(200, ANSWER_BYTES + 1));
        assert!(recent.get(&key(9_999), now, age).is_none(), "one that is too large");
        for number in 0..32 {
            recent.put(key(10_000 + number), now, &answer(200, ANSWER_BYTES));
        }
        let kept = recent.kept.lock();
        assert!(kept.iter().map(|kept| kept.bytes).sum::<usize>() <= BYTES);
        assert!(kept.back().unwrap().key == key(10_031));
    }

    #[tokio::test]
    async fn one_asks_while_the_others_wait_and_nothing_is_left_of_the_waiting() {
        let recent = Recent::default();
        let first = recent.turn(key(1)).await;
        let other = recent.turn(key(2)).await;
        {
            let waiting = recent.turn(key(1));
            futures::pin_mut!(waiting);
            assert!(futures::poll!(waiting.as_mut()).is_pending());
        }
        drop((first, other));
        assert!(recent.asking.lock().is_empty());
        drop(recent.turn(key(1)).await);
        assert!(recent.asking.lock().is_empty());
    }
}
