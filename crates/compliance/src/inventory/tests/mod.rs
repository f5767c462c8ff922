mod derived;

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;
use crate::model::attributes::ObjectType;
use crate::model::property::Property;
use crate::reports::signature::{NodeCertificate, SigningKey};
use InventorySignatureError as Refused;

const AGENT1: &[u8] = include_bytes!("../../../tests/data/inventories/agent1.ocs");
const AGENT1_SIGN: &[u8] = include_bytes!("../../../tests/data/inventories/agent1.ocs.sign");
const BAD: &[u8] = include_bytes!("../../../tests/data/inventories/windows-bad-certificate.ocs");
const BAD_SIGN: &[u8] =
    include_bytes!("../../../tests/data/inventories/windows-bad-certificate.ocs.sign");
const AGENT1_VERSION: &str = "8.2.5.1902648046";
const ID: &str = "c6642a36-b1ed-43e4-a7b7-7d0e1f85063e";

fn read(xml: &[u8]) -> Result<NodeFacts, InventoryError> {
    NodeFacts::read(xml, &Limits::default())
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn hollow_facts(seed: u64, certificate: &str) -> NodeFacts {
    hollow::node(seed, ID, "web-1.example.org", "root", certificate, now())
}

#[test]
fn an_inventory_of_rudder_is_read() {
    let facts = read(AGENT1).unwrap();
    let node = &facts.node;
    assert_eq!((node.id.as_str(), node.hostname.as_str()), (ID, "agent1"));
    assert_eq!(
        (node.agent.name.as_str(), node.policy_server_id.as_str()),
        ("dsc", "root")
    );
    assert_eq!(node.agent.owner, "nt authority\\system");
    assert_eq!(
        (node.os.kernel.as_str(), node.os.name.as_str()),
        ("Windows", "Windows2025")
    );
    assert_eq!(node.os.kernel_version, "10.0.26100");
    assert_eq!(node.agent.version, AGENT1_VERSION);
    assert_eq!(node.ram, Some(2_047 << 20));
    assert_eq!(node.architecture_description, "x86_64");
    assert_eq!(node.accounts, ["Administrator", "vagrant"]);
    let drives = &facts.inventory.elements[&ObjectType::FileSystem];
    assert_eq!(drives[0]["mountPoint"], "C:");
    assert_eq!(facts.inventory.elements[&ObjectType::Software].len(), 57);
    // 07:00:41 in Los Angeles.
    assert_eq!(facts.date, Some("2025-01-13T15:00:41Z".parse().unwrap()));
    let zone = node.time_zone.as_ref().unwrap();
    assert_eq!(
        (zone.name.as_str(), zone.offset.as_str()),
        ("America/Los_Angeles", "-0800")
    );
    let [update] = &facts.updates[..] else {
        panic!("{:?}", facts.updates);
    };
    // Its kind is none that Rudder knows.
    assert_eq!(
        (update.kind.as_str(), update.from.as_str()),
        ("Definition Updates", "Windows Update")
    );
    assert_eq!(update.ids, "KB2267602,c05d85fa-5a8c-47e3-8c39-e759ba9d8b0f");
    assert!(update.description.starts_with("Install this update"));
    let machines = &facts.inventory.elements[&ObjectType::Machine];
    assert_eq!(machines.len(), 1);
    // It tells VirtualBox; groups of Rudder ask for this.
    assert_eq!(machines[0]["vmType"], "vbox");
}

#[test]
fn an_inventory_of_rudder_is_written_as_it_was_read() {
    for xml in [AGENT1, BAD] {
        let facts = read(xml).unwrap();
        assert_eq!(read(write(&facts).as_bytes()), Ok(facts));
    }
}

#[test]
fn a_signature_of_rudder_is_checked() {
    let facts = read(AGENT1).unwrap();
    let signature = InventorySignature::parse(AGENT1_SIGN).unwrap();
    let told = signature.verify(AGENT1, &facts, None).unwrap();
    assert!(signature.verify(AGENT1, &facts, Some(&told)).is_ok());
    let mut altered = AGENT1.to_vec();
    let last = altered.len() - 1;
    altered[last] ^= 1;
    assert_eq!(
        signature.verify(&altered, &facts, None),
        Err(Refused::Invalid)
    );
    // Another node's known key.
    let other = NodeCertificate::from_pem(read(BAD).unwrap().certificate.as_bytes()).unwrap();
    assert!(matches!(
        signature.verify(AGENT1, &facts, Some(&other)),
        Err(Refused::OtherKey { .. })
    ));
    // Rudder's own vector of a certificate that is not the node's.
    let facts = read(BAD).unwrap();
    let signature = InventorySignature::parse(BAD_SIGN).unwrap();
    let error = signature.verify(BAD, &facts, None).unwrap_err();
    assert_eq!(
        error,
        Refused::OtherNode {
            node: "b73ea451-c42a-420d-a540-47b445e58313".into(),
            found: "not-the-correct-node-id".into(),
        }
    );
}

/// A node with a key of this kind: what signs, what it shows, and what it tells.
fn signer(algorithm: &'static rcgen::SignatureAlgorithm) -> (SigningKey, NodeCertificate, String) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::default();
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name.push(uid, ID);
    let pem = params.self_signed(&key).unwrap().pem();
    let signing = SigningKey::from_pem(key.serialize_pem().as_bytes()).unwrap();
    let certificate = NodeCertificate::from_pem(pem.as_bytes()).unwrap();
    (signing, certificate, write(&hollow_facts(1, &pem)))
}

#[test]
fn what_an_agent_signs_is_accepted() {
    let (signing, certificate, xml) = signer(&rcgen::PKCS_RSA_SHA256);
    let signed =
        InventorySignature::sign(xml.as_bytes(), &signing, &certificate, "web-1", "today").unwrap();
    let read_back = InventorySignature::parse(signed.to_file().as_bytes()).unwrap();
    assert_eq!(read_back, signed);
    let facts = read(xml.as_bytes()).unwrap();
    assert!(read_back.verify(xml.as_bytes(), &facts, None).is_ok());
    // A signature by another kind of key is of no use, whatever its file says.
    let elliptic = KeyPair::generate().unwrap();
    let elliptic = SigningKey::from_pem(elliptic.serialize_pem().as_bytes()).unwrap();
    let mut other =
        InventorySignature::sign(xml.as_bytes(), &elliptic, &certificate, "", "").unwrap();
    let refused = other.verify(xml.as_bytes(), &facts, None).unwrap_err();
    assert!(refused.to_string().contains("signs by sha512"), "{refused}");
    other.algorithm = "sha512".into();
    let refused = other.verify(xml.as_bytes(), &facts, None).unwrap_err();
    assert_eq!(refused, InventorySignatureError::Invalid);
}

#[test]
fn inventories_are_signed_by_elliptic_keys_too() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        let (signing, certificate, xml) = signer(algorithm);
        let signed =
            InventorySignature::sign(xml.as_bytes(), &signing, &certificate, "", "").unwrap();
        let facts = read(xml.as_bytes()).unwrap();
        let read_back = InventorySignature::parse(signed.to_file().as_bytes()).unwrap();
        assert!(read_back.verify(xml.as_bytes(), &facts, None).is_ok());
        let altered = xml.replace("web-1", "web-2");
        let facts = read(altered.as_bytes()).unwrap();
        let refused = read_back.verify(altered.as_bytes(), &facts, None);
        assert_eq!(refused, Err(InventorySignatureError::Invalid));
    }
}

#[test]
fn old_agents_tell_their_certificate_without_its_first_and_last_line() {
    let facts = read(AGENT1).unwrap();
    let bare: String = facts
        .certificate
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let xml = String::from_utf8(AGENT1.to_vec()).unwrap();
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    let (from, to) = (xml.find(begin).unwrap(), xml.find(end).unwrap());
    let text = [&xml[..from], &bare, &xml[to + end.len()..]].concat();
    let old = read(text.as_bytes()).unwrap();
    let key = |facts: &NodeFacts| NodeCertificate::from_pem(facts.certificate.as_bytes()).unwrap();
    assert_eq!(key(&old), key(&facts));
}

#[test]
fn a_certificate_may_tell_its_node_in_large_letters() {
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let mut params = CertificateParams::default();
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name.push(uid, ID.to_uppercase());
    let pem = params.self_signed(&key).unwrap().pem();
    let certificate = NodeCertificate::from_pem(pem.as_bytes()).unwrap();
    let signing = SigningKey::from_pem(key.serialize_pem().as_bytes()).unwrap();
    let xml = write(&hollow_facts(1, &pem));
    let signed = InventorySignature::sign(xml.as_bytes(), &signing, &certificate, "", "").unwrap();
    let facts = read(xml.as_bytes()).unwrap();
    assert_eq!(signed.verify(xml.as_bytes(), &facts, None), Ok(certificate));
}

#[test]
fn other_signature_files_are_refused() {
    let good = String::from_utf8(AGENT1_SIGN.to_vec()).unwrap();
    for (from, to, field) in [
        ("rudder-signature-v1", "rudder-signature-v2", "header"),
        ("sha512", "md5", "algorithm"),
        ("digest=", "digest=zz", "digest"),
        ("digest=", "other=", "digest"),
    ] {
        let text = good.replace(from, to);
        let error = InventorySignature::parse(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
    // Words may have large letters.
    let loud = good.replace("sha512", "SHA512");
    let loud = loud.replace("rudder-signature-v1", "Rudder-Signature-V1");
    assert_eq!(
        InventorySignature::parse(loud.as_bytes()),
        InventorySignature::parse(AGENT1_SIGN)
    );
    assert!(InventorySignature::parse(&[b'a'; 20_000]).is_err());
    assert!(InventorySignature::parse(&[0xff, 0xfe]).is_err());
}

#[test]
fn each_mandatory_field_is_missed() {
    let xml = write(&hollow_facts(1, "a certificate"));
    let mut named = BTreeMap::new();
    for (remove, field) in [
        (vec!["UUID"], "RUDDER/UUID"),
        (
            vec!["HOSTNAME", "FQDN"],
            "RUDDER/HOSTNAME or OPERATINGSYSTEM/FQDN",
        ),
        (vec!["AGENT_NAME"], "RUDDER/AGENT/AGENT_NAME"),
        (vec!["AGENT_CERT"], "RUDDER/AGENT/AGENT_CERT"),
        (vec!["OWNER"], "RUDDER/AGENT/OWNER"),
        (
            vec!["POLICY_SERVER_UUID"],
            "RUDDER/AGENT/POLICY_SERVER_UUID",
        ),
        (
            vec!["FULL_NAME", "KERNEL_NAME", "NAME"],
            "OPERATINGSYSTEM/FULL_NAME, KERNEL_NAME or NAME",
        ),
        (vec!["KERNEL_VERSION"], "OPERATINGSYSTEM/KERNEL_VERSION"),
    ] {
        let mut text = xml.clone();
        for name in remove {
            text = text.replace(&format!("<{name}>"), "<GONE>");
            text = text.replace(&format!("</{name}>"), "</GONE>");
        }
        assert_eq!(
            read(text.as_bytes()),
            Err(InventoryError::Missing { field })
        );
        named.insert(field, ());
    }
    assert_eq!(named.len(), 8);
    // One of two is enough.
    let text = xml.replace("HOSTNAME>", "GONE>");
    assert_eq!(
        read(text.as_bytes()).unwrap().node.hostname,
        "web-1.example.org"
    );
    let text = xml.replace(ID, "../../etc/passwd");
    assert!(matches!(
        read(text.as_bytes()),
        Err(InventoryError::Field {
            field: "RUDDER/UUID",
            ..
        })
    ));
}

#[test]
fn what_tools_tell_in_their_ways_is_told_in_that_of_rudder() {
    let xml = write(&hollow_facts(1, "a certificate"));
    let cut = |from: &str, to: &str| {
        let (begin, end) = (xml.find(from).unwrap(), xml.find(to).unwrap() + to.len());
        xml.replace(&xml[begin..end], "")
    };
    let with = |records: &str| {
        let text = cut("<OPERATINGSYSTEM>", "</OPERATINGSYSTEM>");
        let text = text.replace("<HOSTNAME>web-1.example.org<", "<HOSTNAME>localhost<");
        let text = text.replace("</CONTENT>", &format!("{records}</CONTENT>"));
        read(text.as_bytes())
    };
    let system = |name: &str, arch: &str, fqdn: &str| {
        format!(
            "<OPERATINGSYSTEM><NAME>{name}</NAME><ARCH>{arch}</ARCH><FQDN>{fqdn}</FQDN>\
             <KERNEL_VERSION>1</KERNEL_VERSION></OPERATINGSYSTEM>"
        )
    };
    for (name, told, arch) in [
        ("Debian", "amd64", "x86_64"),
        ("Debian", "x86_64", "x86_64"),
        ("Windows", "64-bit", "x86_64"),
        ("Windows", "32-bit", "x86"),
        ("Debian", "i686", "i686"),
        ("Debian", "powerpc", "ppc"),
        ("Debian", "AARCH64", "aarch64"),
        ("AIX", "powerpc", "ppc64"),
    ] {
        let facts = with(&system(name, told, "web")).unwrap();
        assert_eq!(facts.node.architecture_description, arch, "{name} {told}");
    }
    let facts = with(&format!(
        "{}<HARDWARE><ARCHNAME>MSWin32-x64-multi-thread</ARCHNAME></HARDWARE>\
         <LOCAL_USERS><NAME>ada</NAME></LOCAL_USERS>\
         <LOCAL_USERS><LOGIN>bob</LOGIN><NAME>Bob</NAME></LOCAL_USERS>\
         <LOCAL_USERS><LOGIN>ada</LOGIN></LOCAL_USERS>\
         <DRIVES><TYPE>Local Disk</TYPE><LETTER>Q:</LETTER></DRIVES>\
         <DRIVES><TYPE>/odd</TYPE><VOLUMN>a disk</VOLUMN></DRIVES>\
         <DRIVES><VOLUMN>only</VOLUMN></DRIVES>\
         <NETWORKS><DESCRIPTION>if9</DESCRIPTION><IPADDRESS>203.0.113.1,203.0.113.2</IPADDRESS>\
         <IPADDRESS6>2001:db8::2/64</IPADDRESS6>\
         </NETWORKS><NETWORKS><DESCRIPTION>if8</DESCRIPTION><IPADDRESS6>2001:db8::1/64</IPADDRESS6>\
         </NETWORKS><BIOS><SMANUFACTURER>Not Available</SMANUFACTURER>\
         <MMANUFACTURER>Oracle</MMANUFACTURER></BIOS>",
        system("Windows", "", "web")
    ))
    .unwrap();
    let node = &facts.node;
    assert_eq!(node.hostname, "web");
    assert_eq!(node.architecture_description, "x86_64");
    let accounts = |name: &str| node.accounts.iter().filter(|one| *one == name).count();
    assert_eq!(
        (accounts("ada"), accounts("bob"), accounts("Bob")),
        (1, 1, 0)
    );
    let all = |kind, attribute: &str| -> Vec<String> {
        let elements = facts.inventory.elements[&kind].iter();
        elements
            .filter_map(|one| one.get(attribute).cloned())
            .collect()
    };
    let mounts = all(ObjectType::FileSystem, "mountPoint");
    for mount in ["Q:", "/odd", "only"] {
        assert!(mounts.contains(&mount.to_owned()), "{mount}: {mounts:?}");
    }
    let of_interfaces = all(ObjectType::NetworkInterface, "ipHostNumber");
    for address in ["203.0.113.1", "203.0.113.2", "2001:db8::2", "2001:db8::1"] {
        let address = &address.to_owned();
        assert!(
            node.ip_addresses.contains(address),
            "{:?}",
            node.ip_addresses
        );
        assert!(of_interfaces.contains(address), "{of_interfaces:?}");
    }
    let names = all(ObjectType::NetworkInterface, "networkInterface");
    assert_eq!(names.iter().filter(|name| *name == "if9").count(), 3);
    assert_eq!(all(ObjectType::Machine, "manufacturer"), ["Oracle"]);
    assert_eq!(read(write(&facts).as_bytes()).unwrap().node, facts.node);

    // Every such machine is called so.
    let nameless = with(&system("Debian", "x86_64", "127.0.0.1")).unwrap_err();
    assert!(
        matches!(nameless, InventoryError::Missing { .. }),
        "{nameless}"
    );
    // A hook tells another name.
    let hook = r#"[{"rudder_override_hostname":"told.example.org"}]"#;
    let custom = format!("<CUSTOM_PROPERTIES>{hook}</CUSTOM_PROPERTIES><HOSTNAME>");
    let facts = read(xml.replacen("<HOSTNAME>", &custom, 1).as_bytes()).unwrap();
    assert_eq!(facts.node.hostname, "told.example.org");
    let own = facts.node.properties.iter();
    let mut own = own.filter(|one| one.name == "rudder_original_hostname");
    assert_eq!(own.next().unwrap().value, "web-1.example.org");
    assert_eq!(read(write(&facts).as_bytes()).unwrap().node, facts.node);
}

#[test]
fn hooks_tell_properties_and_never_keep_a_node_out() {
    let xml = write(&hollow_facts(1, "a certificate"));
    let told = |json: &str| {
        let custom = format!("<CUSTOM_PROPERTIES>{json}</CUSTOM_PROPERTIES><HOSTNAME>");
        let facts = read(xml.replacen("<HOSTNAME>", &custom, 1).as_bytes()).unwrap();
        let all = facts.node.properties.into_iter();
        all.map(|one| {
            assert_eq!(one.provider.as_deref(), Some("inventory"));
            format!("{}={}", one.name, one.value)
        })
        .collect::<Vec<_>>()
    };
    let long = "x".repeat(70_000);
    for (json, properties) in [
        (r#"[{"datacenter":"Paris"}]"#, &["datacenter=\"Paris\""][..]),
        (r#"[{"a":1},{"b":{"c":[2]}}]"#, &["a=1", r#"b={"c":[2]}"#]),
        // Two hooks of the same name; something that is no hook's.
        (r#"[{"a":1},{"a":2},3,null]"#, &["a=2"]),
        (r#"{"a":1}"#, &["a=1"]),
        (r#"[{"my prop":1,"good":2,"":3}]"#, &["good=2"]),
        (&format!(r#"[{{"long":"{long}","good":2}}]"#), &["good=2"]),
        ("not json", &[]),
        ("[{\"a\":1}", &[]),
        ("7", &[]),
    ] {
        assert_eq!(told(json), properties, "{json:.60}");
    }
    let many: Vec<_> = (0..2_000).map(|at| format!(r#"{{"p{at}":1}}"#)).collect();
    assert_eq!(told(&format!("[{}]", many.join(","))).len(), 1_000);

    // A server of Rudder reads only lists.
    let mut facts = hollow_facts(1, "a certificate");
    facts.node.properties = vec![Property {
        provider: Some("inventory".into()),
        ..Property::new("a", 1.into())
    }];
    let written = write(&facts);
    assert!(written.contains("<CUSTOM_PROPERTIES>[{"), "{written}");
}

#[test]
fn hostile_xml_is_refused() {
    let wrap = |inner: &str| format!("<REQUEST><CONTENT>{inner}</CONTENT></REQUEST>");
    let deep = wrap(&"<A>".repeat(100));
    for (xml, problem) in [
        (String::new(), "no element"),
        ("<html></html>".into(), "not REQUEST"),
        (
            "<!DOCTYPE a [<!ENTITY b \"c\">]><REQUEST></REQUEST>".into(),
            "document type",
        ),
        (wrap("<ENVS><KEY>&b;</KEY></ENVS>"), "entity &b;"),
        (wrap("<ENVS><KEY>&#0;</KEY></ENVS>"), "character"),
        (
            wrap("<ENVS><KEY>a&#27;[2J</KEY></ENVS>"),
            "character U+001B",
        ),
        (wrap("<ENVS><KEY>a\u{7}</KEY></ENVS>"), "character U+0007"),
        (
            wrap("<ENVS><KEY><![CDATA[\u{1b}]]></KEY></ENVS>"),
            "character U+001B",
        ),
        (wrap("<ENVS><KEY>&#xFFFE;</KEY></ENVS>"), "character U+FFFE"),
        (wrap("<ENVS></KEY>"), "reading an inventory"),
        ("<REQUEST><CONTENT>".into(), "is open"),
        (deep, "16 elements inside"),
    ] {
        let error = read(xml.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(problem), "{xml}: {error}");
    }
    let small = Limits {
        bytes: 1_000,
        depth: 4,
        elements: 20,
        text_bytes: 50,
    };
    let many = wrap(&"<ENVS/>".repeat(30));
    let long = wrap(&format!("<ENVS><KEY>{}</KEY></ENVS>", "a".repeat(60)));
    for xml in [many, long, "<REQUEST>".repeat(200)] {
        let error = NodeFacts::read(xml.as_bytes(), &small).unwrap_err();
        assert!(matches!(error, InventoryError::TooLarge { .. }), "{error}");
    }
    let error = read(b"<REQUEST>\xff</REQUEST>").unwrap_err().to_string();
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn dates_have_limits() {
    let mut facts = hollow_facts(1, "a certificate");
    let seconds = |hours: i64, more: i64| SignedDuration::from_secs(hours * 3_600 + more);
    for (age, accepted) in [
        (seconds(48, 0), true),
        (seconds(48, 1), false),
        (seconds(-12, 0), true),
        (seconds(-12, -1), false),
        (seconds(0, 0), true),
    ] {
        facts.date = Some(now() - age);
        assert_eq!(facts.check_date(now()).is_ok(), accepted, "{age:?}");
    }
    facts.date = None;
    assert_eq!(facts.check_date(now()), Ok(()));
}

#[test]
fn packed_inventories_have_a_bound() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(AGENT1).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(
        &*unpack("a.ocs.gz", &packed, &Limits::default()).unwrap(),
        AGENT1
    );
    assert_eq!(
        &*unpack("a.ocs", AGENT1, &Limits::default()).unwrap(),
        AGENT1
    );
    let small = Limits {
        bytes: AGENT1.len() - 1,
        ..Limits::default()
    };
    assert!(unpack("a.ocs.gz", &packed, &small).is_err());
}

#[test]
fn hollow_nodes_are_as_large_as_real_ones_and_differ() {
    let (mut sizes, mut systems, mut packages) = (Vec::new(), BTreeMap::new(), Vec::new());
    for seed in 0..300 {
        let facts = hollow_facts(seed, "a certificate");
        assert_eq!(facts, hollow_facts(seed, "a certificate"));
        sizes.push(write(&facts).len());
        packages.push(facts.inventory.elements[&ObjectType::Software].len());
        *systems.entry(facts.node.os.full_name).or_insert(0) += 1;
    }
    sizes.sort_unstable();
    assert!(
        sizes[0] > 50_000 && sizes[299] < 350_000,
        "{} {}",
        sizes[0],
        sizes[299]
    );
    assert!((90_000..200_000).contains(&sizes[150]), "{}", sizes[150]);
    assert_eq!(packages.iter().min(), Some(&160));
    assert_eq!(packages.iter().max(), Some(&418));
    assert_eq!(systems.len(), 8);
    assert!(systems["Debian GNU/Linux 12 (bookworm)"] > 45);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(seed: u64, key in "[a-z]{1,5}", value in "[ -~é\n]{0,40}", login in "[a-z<&\"']{1,9}") {
        let mut facts = hollow_facts(seed, "-----BEGIN-----\nabc\n-----END-----");
        let property = Property::new(key, value.clone().into());
        facts.node.properties = vec![Property { provider: Some("inventory".into()), ..property }];
        facts.node.accounts.push(login);
        let words: Vec<&str> = value.split(' ').filter(|word| !word.is_empty()).collect();
        let value = format!("v{}v", words.join(" "));
        facts.inventory.push(ObjectType::Environment, &[("name", "X"), ("value", &value)]);
        let read = read(write(&facts).as_bytes()).unwrap();
        prop_assert_eq!(&read.node, &facts.node);
        prop_assert_eq!(&read.updates, &facts.updates);
        prop_assert_eq!(&read.capabilities, &facts.capabilities);
        prop_assert_eq!(&read.inventory, &facts.inventory);
        prop_assert_eq!(read.date, facts.date);
    }

    #[test]
    fn damage_is_never_worse_than_an_error(
        // What is cut off behind its last element is missed by nobody.
        cut in 0..AGENT1.trim_ascii_end().len(),
        at in 0..AGENT1.len(),
        byte: u8,
    ) {
        let mut damaged = AGENT1.to_vec();
        damaged[at] = byte;
        if let Ok(facts) = read(&damaged) {
            prop_assert!(facts.node.check().is_ok());
        }
        prop_assert!(read(&AGENT1[..cut]).is_err());
    }
}
