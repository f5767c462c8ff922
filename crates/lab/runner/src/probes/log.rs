//! How many lines of a log match.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lab_lifecycle::Follower;
use regex::bytes::Regex;

use super::value::{Value, pattern_of};

/// Lines of some logs that match, from the first look on.
pub(super) struct LogCount {
    pattern: Pattern,
    /// Nobody else has it but a look that took longer than its try.
    state: Mutex<State>,
}

enum Pattern {
    Contains(Vec<u8>),
    Regex(Regex),
}

impl Pattern {
    fn matches(&self, line: &[u8]) -> bool {
        match self {
            Self::Contains(text) => line.windows(text.len()).any(|part| part == text),
            Self::Regex(regex) => regex.is_match(line),
        }
    }
}

struct State {
    follower: Follower,
    count: u64,
    has_looked: bool,
}

impl LogCount {
    /// Counts in these files. The pattern is a text, or `/a regular expression/`.
    pub(super) fn new(pattern: &str, logs: Vec<PathBuf>) -> Result<Self, String> {
        let regex = pattern.strip_prefix('/');
        let regex = regex.and_then(|rest| rest.strip_suffix('/'));
        Ok(Self {
            pattern: match regex.filter(|regex| !regex.is_empty()) {
                Some(regex) => Pattern::Regex(pattern_of(regex)?),
                None => Pattern::Contains(pattern.as_bytes().to_vec()),
            },
            state: Mutex::new(State {
                follower: Follower::new(logs),
                count: 0,
                has_looked: false,
            }),
        })
    }

    /// How many lines have matched since the first look.
    pub(super) async fn look(count: &Arc<Self>) -> Result<Value, String> {
        let count = Arc::clone(count);
        // A log may have grown by more than can be read at once.
        let looked = tokio::task::spawn_blocking(move || count.look_now()).await;
        looked.map_err(|error| error.to_string())?
    }

    fn look_now(&self) -> Result<Value, String> {
        // After a look that took longer than its try, the next one would wait here.
        let Ok(mut state) = self.state.try_lock() else {
            return Err("the look before is still reading the log".to_owned());
        };
        let state = &mut *state;
        let mut found = 0;
        let polled = state.follower.poll(|_, line| {
            found += u64::from(self.pattern.matches(line));
        });
        polled.map_err(|error| error.to_string())?;
        match state.has_looked {
            true => state.count += found,
            false => state.has_looked = true,
        }
        Ok(Value::Number(state.count as f64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn lines_are_counted_from_the_first_look_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mut file = std::fs::File::create(&path).unwrap();
        let count = |pattern: &str| {
            let logs = vec![path.clone(), folder.path().join("none.log")];
            Arc::new(LogCount::new(pattern, logs).unwrap())
        };
        let (text, regex) = (count("boom"), count("/^bo+m [0-9]/"));
        file.write_all(b"boom 0\n").unwrap();
        for look in [&text, &regex] {
            assert_eq!(LogCount::look(look).await, Ok(Value::Number(0.0)));
        }
        file.write_all(b"boom 1\nquiet\na boom\nboooom 2\nboo")
            .unwrap();
        assert_eq!(LogCount::look(&text).await, Ok(Value::Number(2.0)));
        assert_eq!(LogCount::look(&regex).await, Ok(Value::Number(2.0)));
        file.write_all(b"m 3\n").unwrap();
        assert_eq!(LogCount::look(&text).await, Ok(Value::Number(3.0)));
        assert_eq!(LogCount::look(&regex).await, Ok(Value::Number(3.0)));
    }

    #[test]
    fn a_look_does_not_wait_for_one_that_goes_on() {
        let count = Arc::new(LogCount::new("x", Vec::new()).unwrap());
        let held = count.state.lock().unwrap();
        let other = Arc::clone(&count);
        let found = std::thread::spawn(move || other.look_now()).join().unwrap();
        drop(held);
        assert!(found.unwrap_err().contains("still reading"));
    }
}
