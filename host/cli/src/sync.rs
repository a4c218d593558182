//! Option for the resync period.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;

/// Options of hosts.
#[derive(Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Options {
    /// Look at every object at least this often, give or take a tenth, also when nothing changes: 10m, 1h, 90s.
    #[arg(long = "sync-period", value_name = "DURATION", default_value = "10m", value_parser = parse)]
    pub period: Duration,
}

fn parse(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    match Duration::try_from(duration) {
        Ok(period) if period >= Duration::from_secs(1) => Ok(period),
        _ => Err("it has to be a second or more".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        sync: Options,
    }

    #[test]
    fn the_period_is_a_duration_of_a_second_or_more() {
        assert_eq!(Command::parse_from(["capwasm"]).sync.period, capwasm_server::host::SYNC_PERIOD);
        for (text, seconds) in
            [("90s", Some(90)), ("1h30m", Some(5400)), ("0s", None), ("-10m", None), ("10", None), ("often", None)]
        {
            let argument = format!("--sync-period={text}");
            let parsed = Command::try_parse_from(["capwasm", &argument]).ok();
            assert_eq!(parsed.map(|command| command.sync.period.as_secs()), seconds, "{text}");
        }
    }
}
