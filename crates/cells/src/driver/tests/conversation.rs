//! What is said over the protocol of driver programs.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};

use super::*;

/// The laboratory's side, and how the driver ended.
struct Laboratory {
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
    driver: JoinHandle<io::Result<()>>,
}

impl Laboratory {
    fn start() -> Self {
        let (to, input) = duplex(1 << 16);
        let (output, from) = duplex(1 << 16);
        Self {
            to,
            from: BufReader::new(from).lines(),
            driver: tokio::spawn(run(BufReader::new(input), output)),
        }
    }

    async fn say(&mut self, line: Value) {
        let line = format!("{line}\n");
        self.to.write_all(line.as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Option<Value> {
        let line = self.from.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Hears until a line is as it should be; gives it.
    async fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.hear().await.unwrap();
            if is(&line) {
                return line;
            }
        }
    }
}

fn hello(address: &str) -> Value {
    json!({ "op": "hello", "protocol": 1, "seed": 7, "talk_to": address })
}

#[tokio::test]
async fn it_greets_makes_counts_and_goes() {
    let (_, address, _stop) = fake_bbs().await;
    let mut laboratory = Laboratory::start();
    laboratory.say(hello(&address)).await;
    let greeted = laboratory.hear().await.unwrap();
    assert_eq!(greeted["ok"], true);
    assert_eq!(greeted["entities"]["lrp"][3], "running");
    let make = |id: u64, what: &str| {
        json!({
            "op": "make", "id": id, "what": what, "count": 20, "rate": null,
            "in_flight": 5, "as": null, "options": {}
        })
    };
    laboratory.say(make(1, "task")).await;
    let mut counts = Value::Null;
    let made = loop {
        let line = laboratory.hear().await.unwrap();
        match line.get("counts") {
            Some(told) => counts = told.clone(),
            None => break line,
        }
    };
    let expected = json!({ "id": 1, "done": true, "made": 20, "failed": 0, "errors": {} });
    assert_eq!(made, expected);
    // Who hears the answer has heard of what it has led to.
    assert_eq!(counts["task"]["desired"], 20);
    laboratory
        .until(|line| line["counts"]["task"]["resolved"] == 20)
        .await;
    laboratory.say(make(2, "cake")).await;
    let refused = laboratory.until(|line| line.get("id").is_some()).await;
    assert_eq!(
        refused,
        json!({ "id": 2, "error": "it makes task and lrp, not \"cake\"" })
    );
    laboratory.say(json!({ "op": "close" })).await;
    while laboratory.hear().await.is_some() {}
    laboratory.driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_cannot_be_counted_is_unknown_until_it_can() {
    let (fake, address, _stop) = fake_bbs().await;
    let mut laboratory = Laboratory::start();
    laboratory.say(hello(&address)).await;
    laboratory
        .until(|line| line["counts"]["task"]["running"] == 0)
        .await;
    // The stream breaks, and lists are not to be had for a while.
    fake.unlisted.store(true, Ordering::SeqCst);
    lock(&fake.state).task_streams.clear();
    let blind = laboratory
        .until(|line| line["counts"]["task"]["running"].is_null())
        .await;
    assert_eq!(blind["counts"]["task"]["desired"], 0);
    fake.unlisted.store(false, Ordering::SeqCst);
    laboratory
        .until(|line| line["counts"]["task"]["running"] == 0)
        .await;
}

#[tokio::test]
async fn one_that_cannot_work_says_why() {
    for (hello, why) in [
        (
            json!({ "op": "hello", "protocol": 2, "seed": 7, "talk_to": "http://127.0.0.1:1" }),
            "it speaks version 1 of the protocol, not 2",
        ),
        (
            json!({ "op": "hello", "protocol": 1, "seed": 7, "talk_to": null }),
            "it needs `talk_to`, the name of the system that is a BBS",
        ),
    ] {
        let mut laboratory = Laboratory::start();
        laboratory.say(hello).await;
        let answer = laboratory.hear().await.unwrap();
        assert_eq!(answer, json!({ "ok": false, "error": why }));
        laboratory.driver.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn lines_that_are_none_end_it_with_a_reason() {
    for (line, why) in [
        (
            json!({ "op": "dance" }),
            "is no request: unknown variant `dance`",
        ),
        (json!({ "op": "close" }), "the first line is no greeting"),
    ] {
        let mut laboratory = Laboratory::start();
        laboratory.say(line).await;
        let error = laboratory.driver.await.unwrap().unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    // Nobody is there to hear of anything.
    let laboratory = Laboratory::start();
    drop(laboratory.to);
    laboratory.driver.await.unwrap().unwrap();
}
