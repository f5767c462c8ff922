//! Requests at a pace, with a bound on those under way.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::protocol::MakeOutcome;

/// When request `n` (from 0) is due, after the first.
fn due(n: u64, rate: Option<f64>) -> Duration {
    rate.map_or(Duration::ZERO, |rate| {
        Duration::try_from_secs_f64(n as f64 / rate).unwrap_or(Duration::MAX)
    })
}

/// Sends `count` requests. Each is sent when it is due, whatever became of those
/// before it, unless `in_flight` are under way: then it is sent late.
///
/// Dropping the future gives up the requests under way.
pub(super) async fn paced<F, R>(
    count: u64,
    rate: Option<f64>,
    in_flight: u32,
    send: F,
) -> MakeOutcome
where
    F: Fn(u64) -> R,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let start = Instant::now();
    let mut made = MakeOutcome::default();
    let mut requests = JoinSet::new();
    for n in 0..count {
        if rate.is_some() {
            tokio::time::sleep_until(start + due(n, rate)).await;
        }
        while let Some(answer) = requests.try_join_next() {
            count_answer(&mut made, answer);
        }
        while requests.len() >= in_flight.max(1) as usize {
            if let Some(answer) = requests.join_next().await {
                count_answer(&mut made, answer);
            }
        }
        requests.spawn(net::boxed(send(n)));
    }
    while let Some(answer) = requests.join_next().await {
        count_answer(&mut made, answer);
    }
    made
}

fn count_answer(
    made: &mut MakeOutcome,
    answer: Result<Result<(), String>, tokio::task::JoinError>,
) {
    match answer {
        Ok(Ok(())) => made.accept(),
        Ok(Err(text)) => made.refuse(text),
        Err(error) => made.refuse(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn requests_are_due_evenly() {
        assert_eq!(due(0, Some(500.0)), Duration::ZERO);
        assert_eq!(due(1000, Some(500.0)), Duration::from_secs(2));
        assert_eq!(due(1000, None), Duration::ZERO);
        assert_eq!(due(1, Some(0.0)), Duration::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_does_not_slow_the_pace() {
        let start = Instant::now();
        let made = paced(10, Some(10.0), 100, |_| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        })
        .await;
        assert_eq!(made.accepted, 10);
        // The last is sent after 0.9 s, and answered 5 s later.
        assert_eq!(start.elapsed().as_millis() / 10, 590);
    }

    #[tokio::test]
    async fn no_more_than_allowed_are_under_way() {
        let (now, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let made = paced(200, None, 7, |n| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                if n % 100 == 0 {
                    Err("refused".to_owned())
                } else {
                    Ok(())
                }
            }
        })
        .await;
        assert_eq!((made.accepted, made.refused), (198, 2));
        assert_eq!(most.load(Ordering::SeqCst), 7);
    }
}
