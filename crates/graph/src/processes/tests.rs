use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use processes::Program;

use super::group::levels;
use super::*;
use crate::service::Directory;
use crate::topology::{ServiceId, of_text as graph};

const DIAMOND: &str = r#"
[services.root]
entry = true
steps = [{ parallel = [{ call = "price" }, { call = "stock" }], join = "all" }]
[services.price]
replicas = 2
steps = [{ call = "store" }]
[services.stock]
[services.store]
"#;

#[test]
fn callees_start_first() {
    let levels = levels(&graph(DIAMOND));
    let id = ServiceId;
    let expected = [
        vec![(id(2), 0), (id(3), 0)],
        vec![(id(1), 0), (id(1), 1)],
        vec![(id(0), 0)],
    ];
    assert_eq!(levels, expected);
}

#[test]
fn a_line_of_the_log_announces() {
    let line = r#"{"timestamp":"1.0","source":"leaf","message":"leaf.ready","log_level":1,"data":{"address":"127.0.0.1:81","admin":"127.0.0.1:82","more":1}}"#;
    let at = Announcement::read(line).unwrap();
    assert_eq!((at.address.port(), at.admin.port()), (81, 82));
    for other in [
        "",
        "leaf.ready",
        &line.replace(".ready", ".already"),
        &line.replace("admin", "x"),
    ] {
        assert_eq!(Announcement::read(other), None, "{other}");
    }
}

/// A shell that announces itself and waits.
fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

fn announced(then: &str) -> Program {
    prepared("", then)
}

/// One that does something before it announces itself.
fn prepared(first: &str, then: &str) -> Program {
    shell(&format!(
        r#"{first}
        echo '{{"message":"x.ready","data":{{"address":"127.0.0.1:1","admin":"127.0.0.1:2"}}}}'; {then}"#
    ))
}

struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn new() -> (Self, Arc<dyn Fn(String) + Send + Sync>) {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let to = Arc::clone(&lines);
        (
            Self(lines),
            Arc::new(move |line| to.lock().unwrap().push(line)),
        )
    }
}

/// The diamond, whose programs are these; `None`: `stop` was there before all had started.
async fn started(
    program: &dyn Fn(ServiceId, u32, &Directory) -> Program,
    said: Arc<dyn Fn(String) + Send + Sync>,
    stop: impl Future<Output = ()>,
) -> Result<Option<ProcessGroup>, ProcessError> {
    let topology = graph(DIAMOND);
    let start = Start {
        topology: &topology,
        program,
        said,
    };
    ProcessGroup::start(&start, stop).await
}

#[tokio::test]
async fn a_group_starts_and_stops_in_order() {
    let (heard, said) = Heard::new();
    let program = |service: ServiceId, replica: u32, known: &Directory| {
        let services = ["root", "price", "stock", "store"];
        let count = services
            .map(|one| known.all(one).count())
            .iter()
            .sum::<usize>();
        let name = format!("{}-{replica} knows {count}", service.0);
        // Whoever has announced itself may be stopped at once.
        prepared(
            &format!("echo {name}; trap 'echo stops {}; exit 0' TERM", service.0),
            "while :; do sleep 0.01; done",
        )
    };
    let group = started(&program, said, pending()).await.unwrap().unwrap();
    assert_eq!((group.children().len(), group.running()), (5, 5));
    assert!(group.stop(ServiceId(0), Duration::from_secs(30)).await);
    assert_eq!(group.running(), 0);
    let heard = heard.0.lock().unwrap();
    assert!(heard.contains(&"0-0 knows 4".to_owned()), "{heard:?}");
    assert!(heard.contains(&"1-1 knows 2".to_owned()), "{heard:?}");
    let stops: Vec<_> = heard
        .iter()
        .filter(|line| line.starts_with("stops"))
        .collect();
    assert_eq!((stops.len(), &**stops[0]), (5, "stops 0"), "{heard:?}");
}

#[tokio::test]
async fn one_that_does_not_start_ends_all() {
    let (pids, said) = Heard::new();
    let program = |service: ServiceId, _: u32, _: &Directory| match service.0 {
        0 => shell("echo no such thing; exit 3"),
        _ => announced("echo $$; while :; do sleep 0.01; done"),
    };
    let error = started(&program, said, pending()).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("root") && error.contains("status 3"),
        "{error}"
    );
    let pids = pids.0.lock().unwrap().clone();
    let pids = pids.iter().filter(|line| line.parse::<u32>().is_ok());
    for pid in pids {
        assert!(
            !std::path::Path::new("/proc").join(pid).exists(),
            "{pid} is left"
        );
    }
}

#[tokio::test]
async fn the_end_of_one_is_seen() {
    let (_, said) = Heard::new();
    let program = |service: ServiceId, _: u32, _: &Directory| match service.0 {
        3 => announced("kill -9 $$"),
        _ => announced("exec sleep 600"),
    };
    let group = started(&program, said, pending()).await.unwrap().unwrap();
    let mut watched: Vec<usize> = (0..group.children().len()).collect();
    let (place, how) = group.next_end(&mut watched).await;
    assert_eq!(how, "signal 9");
    assert_eq!(group.children()[place].name, "store");
    assert_eq!(watched.len(), 4);
    // `sleep` ends by SIGTERM.
    assert!(group.stop(ServiceId(0), Duration::from_secs(30)).await);
}

#[tokio::test]
async fn a_stop_ends_the_start() {
    let (_, said) = Heard::new();
    let program = |service: ServiceId, _: u32, _: &Directory| match service.0 {
        0 => shell("exec sleep 600"),
        _ => announced("exec sleep 600"),
    };
    let stop = tokio::time::sleep(Duration::from_millis(300));
    assert!(started(&program, said, stop).await.unwrap().is_none());
}
