//! What a relay keeps of policies is somebody's disk: agents do what the server signed for them.

use std::path::PathBuf;

use compliance::daemon::{self, Round};

use super::*;

/// An agent behind the relay of a site.
struct Agent {
    config: daemon::Config,
    folder: TempDir,
    root: TempDir,
}

impl Agent {
    fn of(site: &Site) -> Self {
        let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = daemon::Config {
            server: site.relay_url(),
            server_certificate: None,
            policy_key: None,
            data: folder.path().to_path_buf(),
            root: root.path().to_path_buf(),
            hostname: Some("web-1.example.org".into()),
            interval: None,
            force_audit: false,
            admin_listen: None,
        };
        Self {
            config,
            folder,
            root,
        }
    }

    async fn once(&self) -> Round {
        daemon::once(self.config.clone()).await.unwrap()
    }

    fn motd(&self) -> String {
        std::fs::read_to_string(self.root.path().join("motd")).unwrap_or_default()
    }

    /// Rounds until its machine is as told.
    async fn until_motd(&self, text: &str) -> Round {
        let mut last = Round::default();
        let done = async || {
            last = self.once().await;
            assert_eq!((&last.problems[..], last.refused), (&[][..], 0));
            self.motd() == text
        };
        until(done, "the policy to be done").await;
        last
    }

    fn id(&self) -> String {
        let id = std::fs::read_to_string(self.folder.path().join("uuid"));
        id.unwrap().trim().to_owned()
    }

    /// Where the relay keeps its policy.
    fn at_relay(&self, site: &Site) -> PathBuf {
        let name = format!("relay/policies/{}.policy", self.id());
        site.relay_folder.path().join(name)
    }
}

/// One file with this text on every node.
async fn define(site: &Site, text: &str) {
    let technique = json!({
        "id": "motd", "version": "1.0", "name": "Motd", "multiInstance": true,
        "body": {"methods": {"params": [], "items": [{"id": "i1", "name": "Text",
            "method": "file_content", "params": {"path": "/motd", "lines": text}}]}},
    });
    let all = json!({
        "techniques": {"motd/1.0": technique},
        "directives": {"d": {"id": "d", "displayName": "D", "techniqueName": "motd",
            "techniqueVersion": "1.0"}},
        "rules": {"r": {"id": "r", "displayName": "R", "directives": ["d"],
            "targets": ["special:all"]}},
    });
    site.admin.apply(&all).await;
}

/// The same policy with another text, under another tag, as whoever has the relay's disk would
/// write it.
fn forged(file: &[u8], text: (&str, &str)) -> Vec<u8> {
    let end = file.iter().position(|byte| *byte == b'\n').unwrap();
    let unpacked = flate2::read::GzDecoder::new(&file[end + 1..]);
    let json = std::io::read_to_string(unpacked).unwrap();
    assert!(json.contains(text.0), "{json}");
    let json = json.replace(text.0, text.1);
    [b"another-tag\n", &crate::peers::pack(json.as_bytes())[..]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_does_no_policy_that_was_altered_on_its_way() {
    let mut site = Site::start().await;
    let agent = Agent::of(&site);
    define(&site, "first").await;
    agent.until_motd("first\n").await;
    let (place, id) = (agent.at_relay(&site), agent.id());
    let first = std::fs::read(&place).unwrap();
    define(&site, "second").await;
    let good = agent.until_motd("second\n").await;
    let second = std::fs::read(&place).unwrap();
    let other = site.child(A).await;
    assert_ne!(other.id, id);
    let others = site
        .relay_folder
        .path()
        .join(format!("relay/policies/{A}.policy"));
    let others = std::fs::read(others).unwrap();
    site.until_drained().await;
    site.stop_server().await;

    let unsigned = forged(&second, ("second", "forged"));
    let end = unsigned.len() - 5;
    let mut broken = second.clone();
    broken[end.min(second.len() - 5)] ^= 1;
    let retagged = |file: &[u8]| {
        let end = file.iter().position(|byte| *byte == b'\n').unwrap();
        [b"another-tag", &file[end..]].concat()
    };
    for (planted, why) in [
        (unsigned, "it is not signed"),
        (
            retagged(&broken),
            "its signature is not that of the server's",
        ),
        (retagged(&others), "or it is of another node"),
        (first, "it is older ("),
    ] {
        site.stop_relay().await;
        std::fs::write(&place, planted).unwrap();
        site.start_relay().await;
        // What it was last told by its server holds on.
        std::fs::write(agent.root.path().join("motd"), "else\n").unwrap();
        let round = agent.once().await;
        let told = round.problems.iter().any(|one| one.contains(why));
        assert!(told, "{why}: {:?}", round.problems);
        assert_eq!((round.refused, &round.config_id), (1, &good.config_id));
        assert_eq!((round.repaired, &*agent.motd()), (1, "second\n"));
    }
    // The one that is right is the same, whoever kept it.
    site.stop_relay().await;
    std::fs::write(&place, &second).unwrap();
    site.start_relay().await;
    assert_eq!(agent.once().await.refused, 0);
    // The server comes back, and the agent goes on with what it says.
    site.start_server().await;
    define(&site, "third").await;
    until(
        async || {
            agent.once().await;
            agent.motd() == "third\n"
        },
        "the next policy",
    )
    .await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_for_policies_is_taken_by_a_deliberate_act_alone() {
    let mut site = Site::start().await;
    let agent = Agent::of(&site);
    define(&site, "first").await;
    agent.until_motd("first\n").await;
    site.stop_server().await;
    std::fs::remove_file(site.folder.path().join("policy.key")).unwrap();
    site.start_server().await;
    define(&site, "second").await;
    let mut last = Round::default();
    let refused = async || {
        last = agent.once().await;
        last.refused > 0
    };
    until(refused, "the policy of another key").await;
    assert!(last.ran);
    assert_eq!(agent.motd(), "first\n");
    let told = last.problems.join("; ");
    assert!(told.contains("policy.pem of the agent's folder"), "{told}");
    // Told the new one, it goes on.
    let deliberate = Agent {
        config: daemon::Config {
            policy_key: Some(site.folder.path().join("policy.pem")),
            ..agent.config.clone()
        },
        ..agent
    };
    let round = deliberate.once().await;
    // The policy that it had is of the old key.
    assert_eq!(
        (round.refused, round.ran),
        (1, true),
        "{:?}",
        round.problems
    );
    assert_eq!(deliberate.motd(), "second\n");
    assert_eq!(deliberate.once().await.problems, [""; 0]);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_put_back_is_followed() {
    let mut site = Site::start().await;
    let agent = Agent::of(&site);
    define(&site, "first").await;
    agent.until_motd("first\n").await;
    site.until_drained().await;
    site.stop_server().await;
    let (data, copy) = (site.folder.path(), tempfile::tempdir().unwrap());
    let copied = |from: &Path, to: &Path| {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copied(data, copy.path());
    site.start_server().await;
    define(&site, "second").await;
    agent.until_motd("second\n").await;
    site.until_drained().await;
    site.stop_server().await;
    let data = site.folder.path();
    for entry in std::fs::read_dir(data).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    copied(copy.path(), data);
    site.start_server().await;
    agent.until_motd("first\n").await;
    site.stop().await;
}
