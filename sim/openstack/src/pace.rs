//! When what takes time is done.

use parking_lot::Mutex;
use serde_json::Value;

use super::Delays;
use super::cloud::{Cloud, State};

/// When what is under way is done.
pub(super) enum Pace {
    /// After this time.
    Time(Delays),
    /// Until they were looked at so often: nothing waits for a clock then, and nothing runs in the background.
    Looks(Looks),
}

/// How the state changes when a wait is over.
type Act = Box<dyn FnOnce(&Cloud, &mut State) + Send>;

struct Waiting {
    id: String,
    left: usize,
    act: Act,
}

/// What waits to be looked at.
pub(super) struct Looks {
    waiting: Mutex<Vec<Waiting>>,
    /// Looks that everything takes from now on; without any it is done when the call is answered.
    patience: Mutex<usize>,
}

impl Looks {
    pub fn new(patience: usize) -> Looks {
        Looks { waiting: Mutex::default(), patience: Mutex::new(patience) }
    }

    pub fn set_patience(&self, looks: usize) {
        *self.patience.lock() = looks;
    }

    /// Lets `act` wait for looks at `id`.
    pub fn wait(&self, id: &str, act: Act) {
        let left = *self.patience.lock();
        self.waiting.lock().push(Waiting { id: id.to_owned(), left, act });
    }

    /// Something was shown as it was: the next look sees what comes of it now.
    pub fn seen(&self, cloud: &Cloud, shown: &[String]) {
        for waiting in self.waiting.lock().iter_mut().filter(|waiting| shown.contains(&waiting.id)) {
            waiting.left = waiting.left.saturating_sub(1);
        }
        // What is done may begin something else.
        while let Some(act) = self.due() {
            cloud.with(|state| act(cloud, state));
        }
    }

    fn due(&self) -> Option<Act> {
        let mut waiting = self.waiting.lock();
        let at = waiting.iter().position(|waiting| waiting.left == 0)?;
        Some(waiting.remove(at).act)
    }
}

/// Ids of the resource or the resources that a body shows; what they refer to is not among them.
pub(super) fn shown_in(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let of = |resource: &Value| resource["id"].as_str().map(str::to_owned);
    let fields = body.as_object().into_iter().flatten();
    fields
        .flat_map(|(_, field)| match field {
            Value::Array(all) => all.iter().filter_map(of).collect(),
            one => of(one).into_iter().collect::<Vec<_>>(),
        })
        .collect()
}
