use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A busy process is seen about as often as it runs, and in the function that it is in.
#[test]
fn a_busy_process_is_seen_where_it_is_busy() {
    let mut sampler = match StackSampler::new() {
        Ok(sampler) => sampler,
        Err(error) => {
            eprintln!("not run: {error}");
            return;
        }
    };
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut idle = Command::new("sleep").arg("600").spawn().unwrap();
    assert!(sampler.add(busy.id()).unwrap());
    assert!(sampler.add(idle.id()).unwrap());
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let mut in_file = 0;
    let maps = Maps::of(busy.id()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    // A busy machine gives it what it gives it.
    while seen.get(&busy.id()).is_none_or(|count| *count < 50) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        sampler.drain(|stack| {
            *seen.entry(stack.pid).or_default() += 1;
            let (_, program) = stack.addresses();
            in_file += u64::from(program.first().is_some_and(|at| maps.find(*at).is_some()));
        });
    }
    busy.kill().unwrap();
    idle.kill().unwrap();
    let _ = (busy.wait(), idle.wait());
    let busy = seen.get(&busy.id()).copied().unwrap_or_default();
    assert!(busy >= 50, "{seen:?}");
    assert!(in_file * 2 > busy, "{in_file} of {busy}");
    // It began before it was watched, and may have ended its start since.
    assert!(
        seen.get(&idle.id()).is_none_or(|count| *count < 5),
        "{seen:?}"
    );
    assert_eq!(sampler.lost(), 0);
}
