//! Any text as a policy: what is read is run by a hollow agent, and each call is one report. No bytes
//! are a signed one, as nobody has the key.

#![no_main]

use std::time::Duration;

use compliance::agent::{AgentPolicy, Hollow, Rates, RunSettings, run};
use compliance::policy::signature::PolicyKey;
use compliance::reports::moment::Moment;
use compliance::reports::runlog::{Limits, RunLog};
use libfuzzer_sys::fuzz_target;

/// A public key of RFC 8032, 7.1.
const KEY: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
";

fuzz_target!(|data: &[u8]| {
    let key = PolicyKey::from_pem(KEY.as_bytes()).expect("a key");
    assert!(key.verify("node", data).is_err());
    let Ok(policy) = AgentPolicy::from_json(&String::from_utf8_lossy(data), 65_536) else {
        return;
    };
    let start = Moment::from_rfc3339("2018-08-24T15:55:01Z").expect("a time");
    let mut hollow = Hollow::new(Rates::NONE, 1, 1).expect("rates");
    let outcome = run(&policy, &mut hollow, &RunSettings::default(), start, || {
        Duration::ZERO
    });
    // Identities that no server would give out may make the log unreadable, and no more.
    if let Ok(log) = RunLog::parse(outcome.info, &outcome.log, &Limits::default()) {
        assert!(log.reports.len() as u64 <= outcome.counts.iter().sum::<u64>() + 2);
    }
});
