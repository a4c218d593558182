//! A line per machine while they come up; plain lines where there is no terminal.

use std::collections::HashMap;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use parking_lot::Mutex;

/// Progress output.
pub struct Progress {
    bars: MultiProgress,
    lines: Mutex<HashMap<String, (ProgressBar, String)>>,
    terminal: bool,
}

impl Progress {
    pub fn new() -> Self {
        use std::io::IsTerminal;
        Self { bars: MultiProgress::new(), lines: Mutex::default(), terminal: std::io::stderr().is_terminal() }
    }

    /// Prints a permanent line.
    pub fn say(&self, text: &str) {
        // Without a terminal indicatif prints nothing at all.
        if !self.terminal || self.bars.println(text).is_err() {
            eprintln!("{text}");
        }
    }

    /// Shows the state of a machine; `done` ends its line.
    pub fn machine(&self, name: &str, state: &str, done: bool) {
        let mut lines = self.lines.lock();
        let entry = lines.entry(name.to_owned()).or_insert_with(|| {
            let bar = self.bars.add(ProgressBar::new_spinner());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {prefix:32} {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(std::time::Duration::from_millis(120));
            (bar, String::new())
        });
        if entry.1 == state {
            return;
        }
        state.clone_into(&mut entry.1);
        entry.0.set_message(state.to_owned());
        if done {
            entry.0.finish();
        }
        if !self.terminal {
            eprintln!("{name}: {state}");
        }
    }

    /// Ends all lines.
    pub fn finish(&self) {
        for (bar, _) in self.lines.lock().values() {
            bar.finish();
        }
    }
}
