use std::os::unix::fs::{MetadataExt, PermissionsExt};

use diego::models::CertificateProperties;

use super::super::identity::rsa_authority;
use super::accounts::may_act_for_others;
use super::*;

/// A bench whose containers have certificates that are valid for so long.
fn identified(validity: Duration) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let mut identity = rsa_authority(folder.path());
    identity.validity = validity;
    Bench::with(ProcessSettings {
        identity: Some(identity),
        ..ProcessSettings::default()
    })
}

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn a_container_finds_its_key_and_its_certificate() {
    let bench = identified(DAY);
    let script = "stat -c %a $CF_INSTANCE_CERT $CF_INSTANCE_KEY > seen
        head -n 1 -q $CF_INSTANCE_CERT $CF_INSTANCE_KEY >> seen
        echo $CF_INSTANCE_CERT >> seen";
    let mut job = result_of(sh(script), "seen");
    if let Definition::Task(task) = &mut job.definition {
        task.certificate_properties = Some(CertificateProperties {
            organizational_unit: vec!["app:a".into()],
        });
    }
    let result = bench.run(job).await.completion.result;
    let folder = bench.executor.folder.path.join("0-g-1");
    let certificate = folder.join("etc/cf-instance-credentials/instance.crt");
    let expected = format!(
        "644\n600\n-----BEGIN CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n{}\n",
        certificate.display()
    );
    assert_eq!(result, expected);
    let counters = &bench.executor.metrics.counters;
    assert_eq!(counters.certificates.now(), 1);

    let none = Bench::new();
    let script = "test -z \"$CF_INSTANCE_CERT$CF_INSTANCE_KEY\" && ! test -e etc";
    assert_eq!(none.reason(sh(script)).await, None);
}

#[tokio::test]
async fn what_is_asked_to_stop_before_it_begins_needs_none() {
    let bench = identified(DAY);
    let (ask, stop) = net::shutdown();
    ask.send_replace(true);
    let end = bench.run_until(task(sh("touch begun")), stop).await;
    assert_eq!(end.completion.reason, "cancelled");
    assert_eq!(bench.executor.metrics.counters.certificates.now(), 0);
    assert!(!bench.executor.folder.path.join("0-g-1/begun").exists());
}

#[tokio::test]
async fn both_are_replaced_in_time() {
    let bench = identified(Duration::from_millis(800));
    let script = "key=$(cat $CF_INSTANCE_KEY)
        certificate=$(cat $CF_INSTANCE_CERT)
        while test \"$key\" = \"$(cat $CF_INSTANCE_KEY)\"; do sleep 0.05; done
        while test \"$certificate\" = \"$(cat $CF_INSTANCE_CERT)\"; do sleep 0.05; done";
    assert_eq!(bench.reason(limited(sh(script), 60_000)).await, None);
}

#[tokio::test]
async fn what_cannot_be_replaced_ends_its_container() {
    let bench = identified(Duration::from_millis(800));
    let script = "trap 'exit 0' TERM
        until rm -rf etc/cf-instance-credentials; do :; done
        while :; do sleep 0.01; done";
    let reason = bench.reason(limited(sh(script), 60_000)).await.unwrap();
    let expected = "cred-manager-runner exited: write etc/cf-instance-credentials/instance.";
    assert!(reason.starts_with(expected), "{reason}");
    assert_eq!(bench.executor.metrics.counters.failed_certificates.now(), 1);
}

#[tokio::test]
async fn they_are_their_user_s_and_the_rep_follows_no_link_of_that_one_s() {
    if !may_act_for_others() {
        return;
    }
    let bench = identified(DAY);
    // Only root may write there.
    let other = tempfile::tempdir().unwrap();
    std::fs::set_permissions(other.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut action = sh("cat $CF_INSTANCE_KEY > /dev/null");
    action.run_action.as_mut().unwrap().user = "nobody".into();
    let job = Arc::new(task(action));
    bench.executor.create(Arc::clone(&job)).await.unwrap();
    let nobody = Account::named("nobody").unwrap().unwrap();
    let within = bench.executor.folder.path.join("0-g-1/etc");
    let credentials = within.join("cf-instance-credentials");
    assert_eq!(credentials.metadata().unwrap().uid(), nobody.uid);
    let (_never, stop) = net::shutdown();
    let run = || bench.executor.run(Arc::clone(&job), |_| (), stop.clone());
    assert_eq!(run().await.completion.reason, "");
    // As its user might while it runs.
    std::fs::rename(&credentials, within.join("old")).unwrap();
    std::os::unix::fs::symlink(other.path(), &credentials).unwrap();
    let end = run().await.completion;
    assert!(end.reason.contains("Not a directory"), "{}", end.reason);
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn who_asks_is_told_of_the_certificates_that_the_machine_trusts() {
    let trusted = tempfile::tempdir().unwrap();
    let settings = |path: &Path| ProcessSettings {
        trusted_certificates: Some(path.to_owned()),
        ..ProcessSettings::default()
    };
    let bench = Bench::with(settings(trusted.path()));
    let place = trusted.path().canonicalize().unwrap();
    let place = place.display().to_string();
    for (wanted, expected) in [("", ""), ("/etc/certs", &*place)] {
        let mut job = result_of(sh("echo $CF_SYSTEM_CERT_PATH > seen"), "seen");
        if let Definition::Task(task) = &mut job.definition {
            task.trusted_system_certificates_path = wanted.into();
        }
        let result = bench.run(job).await.completion.result;
        assert_eq!(result.trim_end(), expected, "{wanted:?}");
    }
    let logger = Logger::new("rep", Sink::memory(), Level::Debug);
    let none = settings(&trusted.path().join("none"));
    let refused = Process::new(none, Arc::default(), &logger);
    let told = refused.map(drop).unwrap_err().to_string();
    assert!(told.contains("/none: No such file"), "{told}");
}
