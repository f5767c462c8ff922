//! Kills a server while the API writes: what was answered is there, what was not is whole or not
//! at all.

use super::*;
use crate::killed::Process;

const ROUNDS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_was_answered_survives() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path()).await;
    let admin = Admin::of(folder.path(), &process.url).await;
    admin.apply(&super::folder()).await;
    let mut answered: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let admin = Admin::of(folder.path(), &process.url).await;
        let (tell, mut told) = tokio::sync::mpsc::channel(1_000);
        let writing = tokio::spawn(async move {
            for number in 0..1_000 {
                let id = format!("made-{round}-{number}");
                let rule = json!({"id": id, "displayName": id, "directives": ["d"],
                    "targets": ["special:all"]});
                let headers = [("x-api-token", &*admin.token)];
                let path = "/rudder/api/latest/rules";
                let body = rule.to_string();
                let sent = admin.node.request(Method::PUT, path, &headers, body).await;
                match sent {
                    Ok(answer) if answer.status == 200 => tell.send(id).await.unwrap(),
                    Ok(answer) => panic!("{}: {:?}", answer.status, answer.body),
                    // The server is gone.
                    Err(_) => return,
                }
            }
        });
        // At other moments of its work each time; in the last rounds beyond the changes after
        // which all definitions are written at once.
        for _ in 0..(10 + round * 30) {
            answered.push(told.recv().await.unwrap());
        }
        process.kill();
        while let Some(id) = told.recv().await {
            answered.push(id);
        }
        writing.await.unwrap();
        process = Process::start(folder.path()).await;
        let admin = Admin::of(folder.path(), &process.url).await;
        let rules = admin.get("rules").await;
        let rules = rules["rules"].as_array().unwrap();
        for id in &answered {
            let rule = rules.iter().find(|rule| rule["id"] == **id);
            let rule = rule.unwrap_or_else(|| panic!("round {round}: {id} is lost"));
            assert_eq!(rule["managedBy"], "api");
        }
        // At most one was under way.
        assert!(rules.len() <= answered.len() + 2 + round, "{}", rules.len());
    }
    process.kill();
}
