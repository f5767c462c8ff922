use super::*;

const MS: Duration = Duration::from_millis(1);
/// Looks, and gives the processor time alone.
fn look(books: &mut Books, seen: &[Seen]) -> Duration {
    books.look(seen).time
}

fn seen(pid: u32, parent: u32, own_ms: u32, children_ms: u32) -> Seen {
    Seen {
        pid,
        stat: Stat {
            command: format!("c{pid}"),
            state: 'S',
            parent,
            group: 10,
            session: 1,
            user_ticks: 0,
            system_ticks: 0,
            children_ticks: 0,
            threads: 1,
            start_ticks: u64::from(pid),
            rss_pages: 1,
        },
        cpu: MS * own_ms,
        at: Instant::now(),
        children_cpu: MS * children_ms,
    }
}

fn root() -> Books {
    Books::new(&seen(10, 1, 500, 70))
}

#[test]
fn what_the_root_used_before_does_not_count() {
    let mut books = root();
    assert_eq!(look(&mut books, &[seen(10, 1, 520, 70)]), MS * 20);
    assert_eq!(look(&mut books, &[seen(10, 1, 520, 90)]), MS * 20);
}

#[test]
fn whoever_is_kept_from_reading_sees_no_more_processors_than_were_used() {
    let began = Instant::now();
    // Each always uses one processor; it was read then.
    let busy = |pid: u32, after_ms: u32| Seen {
        at: began + MS * after_ms,
        ..seen(pid, 1, after_ms, 0)
    };
    let mut books = Books::new(&busy(10, 0));
    let first = books.look(&[busy(10, 100), busy(11, 100)]);
    assert!((first.cores - 2.0).abs() < 1e-9, "{first:?}");
    // Between the one and the other it stood still; then it had to hurry.
    for (one, other) in [(200, 399), (400, 400), (500, 501)] {
        let used = books.look(&[busy(10, one), busy(11, other)]);
        assert!((used.cores - 2.0).abs() < 1e-9, "{used:?}");
    }
    let (members, _) = books.members();
    assert!(
        members
            .iter()
            .all(|member| member.cpu_cores_max < 1.0 + 1e-9)
    );
    assert_eq!(members[0].cpu, MS * 500);
}

#[test]
fn a_child_that_was_never_seen_counts_once_it_was_waited_for() {
    let mut books = root();
    assert_eq!(look(&mut books, &[seen(10, 1, 500, 110)]), MS * 40);
    assert_eq!(look(&mut books, &[seen(10, 1, 500, 110)]), Duration::ZERO);
}

#[test]
fn a_child_that_was_seen_is_not_counted_again_when_it_is_waited_for() {
    let mut books = root();
    let used = look(&mut books, &[seen(10, 1, 500, 70), seen(11, 10, 300, 0)]);
    assert_eq!(used, MS * 300);
    // It used 50 ms more before it ended.
    assert_eq!(look(&mut books, &[seen(10, 1, 500, 420)]), MS * 50);
    let (members, more) = books.members();
    let cpu: Vec<_> = members.iter().map(|member| member.cpu).collect();
    assert_eq!((cpu, more), (vec![MS * 50, MS * 300], 0));
}

#[test]
fn a_whole_branch_may_end_between_two_looks() {
    let mut books = root();
    // make, which waited for 200 ms of compilers, and one of these.
    let make = seen(11, 10, 40, 200);
    let used = look(
        &mut books,
        &[seen(10, 1, 500, 70), make, seen(12, 11, 90, 0)],
    );
    assert_eq!(used, MS * 330);
    // The compiler used 10 ms more, make 5: the root's children had 70 before.
    let all = 70 + (40 + 5) + 200 + (90 + 10);
    assert_eq!(look(&mut books, &[seen(10, 1, 500, all)]), MS * 15);
}

#[test]
fn nobody_waits_for_an_orphan_and_its_time_stays() {
    let mut books = root();
    look(
        &mut books,
        &[seen(10, 1, 500, 70), seen(11, 10, 1, 0), seen(12, 11, 1, 0)],
    );
    // Its parent ended, and init took it over.
    let used = look(&mut books, &[seen(10, 1, 500, 71), seen(12, 1, 81, 0)]);
    assert_eq!(used, MS * 80);
    assert!(books.knows(12, &seen(12, 1, 0, 0).stat));
    assert_eq!(look(&mut books, &[seen(10, 1, 500, 71)]), Duration::ZERO);
    // A later child that nobody saw is not taken for it.
    assert_eq!(look(&mut books, &[seen(10, 1, 500, 81)]), MS * 10);
}

#[test]
fn a_later_process_with_the_same_id_is_another() {
    let mut books = root();
    look(&mut books, &[seen(10, 1, 500, 70), seen(11, 10, 300, 0)]);
    let mut other = seen(11, 10, 20, 0);
    other.stat.start_ticks = 99;
    assert!(!books.knows(11, &other.stat));
    let used = look(&mut books, &[seen(10, 1, 500, 370), other]);
    assert_eq!(used, MS * 20);
}

#[test]
fn groups_and_sessions_count_only_where_the_tree_made_them() {
    let books = Books::new(&seen(10, 1, 0, 0));
    let stranger = |group, session| {
        let mut stat = seen(50, 1, 0, 0).stat;
        (stat.group, stat.session) = (group, session);
        stat
    };
    let none = BTreeSet::new();
    assert!(
        books.claims(&stranger(10, 7), &none),
        "the root leads group 10"
    );
    assert!(
        !books.claims(&stranger(9, 1), &none),
        "session 1 is not the root's"
    );
    assert!(books.claims(&seen(50, 10, 0, 0).stat, &none));
    assert!(books.claims(&seen(51, 50, 0, 0).stat, &BTreeSet::from([50])));
    let mut started_elsewhere = seen(10, 1, 0, 0);
    started_elsewhere.stat.group = 3;
    let books = Books::new(&started_elsewhere);
    assert!(
        !books.claims(&stranger(3, 7), &none),
        "group 3 is of others"
    );
}
