use std::fs::File;
use std::io::Write;

use jiff::Timestamp;
use lab_experiment::catalogue::Catalogue;
use lab_experiment::{Source, check};
use measure::Clock;

use super::*;
use crate::underway::Underway;

const FILE: &str = r#"
lab = 1
name = "marks"
[[system]]
name = "shop"
run = "shop"
[[lifecycle]]
name = "order"
key = ["id"]
points = [["placed", "placed"], ["paid", "paid"]]
[[step]]
name = "sell"
hold = "1s"
"#;

/// Orders of one log: before the first step, within the steps, and after them, each written right
/// after or right before a mark. However late the thread looks, each is where it was written.
#[test]
fn what_is_written_right_beside_a_mark_is_on_its_own_side_of_it() {
    let source = Source {
        name: "marks.toml".into(),
        text: FILE.into(),
    };
    let plan = check(&source, &[], &Catalogue::default()).unwrap();
    for round in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(home.path(), "marks", Timestamp::now()).unwrap();
        let path = folder.file(RunFile::Log("shop"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut log = File::create(&path).unwrap();
        let mut write = |orders: std::ops::Range<u32>| {
            let line = |order, message| {
                format!("{{\"time\":1700000000,\"msg\":\"{message}\",\"id\":\"{order}\"}}\n")
            };
            let text: String = orders
                .flat_map(|order| [line(order, "placed"), line(order, "paid")])
                .collect();
            log.write_all(text.as_bytes()).unwrap();
        };
        let clock = Clock::start();
        let status = Status::new(&plan, clock);
        let shown = (status, Underway::default().viewers());
        let miner = LogMiner::start(&plan, &folder, 0, shown, Alarm::new()).unwrap();
        // Some rounds meet the thread in its wait, others at the end of one.
        std::thread::sleep(Duration::from_millis(5 * round));
        write(0..3);
        miner.mark(Mark::Begin);
        write(3..8);
        miner.mark(Mark::End);
        write(8..10);
        let mined = miner.finish();
        let ids = |tables: &[Table]| -> Vec<u32> {
            let rows = tables[0].rows.iter();
            let mut ids: Vec<u32> = rows.map(|row| row.id.parse().unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&mined.tables), (0..10).collect::<Vec<_>>());
        assert_eq!(ids(&mined.judged.tables), [3, 4, 5, 6, 7], "round {round}");
    }
}
