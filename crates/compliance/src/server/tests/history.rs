//! Compliance by the hour in the store.

use super::*;
use crate::reports::history::{HOUR, Histories};
use crate::reports::level::{ComplianceLevel, FleetLevel};
use crate::reports::status::Status;
use crate::server::ledger::Reply;
use crate::server::state::HourOf;

on_both_stores!(Cluster:
    an_hour_goes_on_in_the_next_server,
    hours_go_when_they_are_old_a_part_at_a_time,
);

fn level(successes: u32, errors: u32) -> FleetLevel {
    let mut level = ComplianceLevel::of(Status::EnforceSuccess, successes);
    level.count(Status::EnforceError, errors);
    level.into()
}

async fn write(commands: &Commands, histories: &mut Histories<Arc<str>>) {
    let hours = histories.unwritten();
    let kept = commands.run(Request::History(hours.clone())).await;
    assert!(matches!(kept, Ok(Reply::Done)));
    histories.written(&hours);
}

async fn hours(commands: &Commands, thing: &'static str) -> Vec<HourOf> {
    let hours =
        commands.look(move |ledger| Box::pin(async move { ledger.store.hours(thing).await }));
    let hours = hours.await.unwrap().unwrap().into_iter();
    hours.map(|hour| (thing.into(), hour)).collect()
}

async fn an_hour_goes_on_in_the_next_server(place: &Place) {
    let mut histories = Histories::new(48, 10);
    {
        let (commands, _) = place.writer().await;
        histories.observe("".into(), &level(1, 1), HOUR / 2);
        histories.observe("r".into(), &level(1, 0), HOUR / 2);
        histories.advance(HOUR);
        write(&commands, &mut histories).await;
        // Over midnight of the hour, and written twice within it.
        histories.advance(5 * HOUR / 4);
        write(&commands, &mut histories).await;
        assert_eq!(histories.unwritten(), []);
        commands.stop().await;
    }
    let (commands, _) = place.writer().await;
    let now = 3 * HOUR / 2;
    let open =
        commands.look(move |ledger| Box::pin(async move { ledger.store.open_hours(now).await }));
    let open = open.await.unwrap();
    let mut later = Histories::new(48, 10);
    for (thing, hour) in open.unwrap() {
        assert_eq!(hour.begin, HOUR);
        later.resume(thing, hour);
    }
    later.observe("".into(), &level(3, 1), now);
    later.advance(7 * HOUR / 4);
    write(&commands, &mut later).await;

    let fleet = hours(&commands, "").await;
    assert_eq!(fleet.len(), 2);
    assert_eq!((fleet[0].1.known, fleet[0].1.mean()), (HOUR / 2, 50.0));
    // A quarter of 50 %, a quarter that nobody knows, a quarter of 75 %.
    assert_eq!((fleet[1].1.known, fleet[1].1.mean()), (HOUR / 2, 62.5));
    assert_eq!((fleet[1].1.lowest, fleet[1].1.highest), (50.0, 75.0));
    assert_eq!(fleet[1].1.level, level(3, 1));
    let rule = hours(&commands, "r").await;
    assert_eq!(rule[1].1.known, HOUR / 4);
    assert_eq!(hours(&commands, "s").await, []);
}

async fn hours_go_when_they_are_old_a_part_at_a_time(place: &Place) {
    let (commands, _) = place.writer().await;
    let mut histories = Histories::new(5_000, 10);
    histories.observe("".into(), &level(1, 0), 0);
    histories.observe("r".into(), &level(1, 0), 0);
    histories.advance(1_500 * HOUR);
    write(&commands, &mut histories).await;
    for more in [true, false] {
        let purged = commands
            .look(|ledger| Box::pin(async { ledger.store.purge_hours(1_490 * HOUR).await }));
        assert_eq!(purged.await.unwrap().unwrap(), more);
    }
    for thing in ["", "r"] {
        let left = hours(&commands, thing).await;
        assert_eq!(left.len(), 10);
        assert_eq!(left[0].1.begin, 1_490 * HOUR);
    }
}
