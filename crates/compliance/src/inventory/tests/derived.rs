//! What is derived of what agents tell, as Rudder derives it: groups ask for that.

use super::*;

/// An inventory with something else in the place of a text.
fn changed(from: &str, to: &str) -> Result<NodeFacts, InventoryError> {
    let xml = write(&hollow_facts(1, "a certificate"));
    assert!(xml.contains(from), "{from}");
    read(xml.replace(from, to).as_bytes())
}

#[test]
fn a_hostname_has_the_letters_of_one() {
    let own = "<HOSTNAME>web-1.example.org</HOSTNAME>";
    let host = |name: &str| changed(own, &format!("<HOSTNAME>{name}</HOSTNAME>"));
    for name in ["web", "WEB_1.example.org", "9web", "a-.b"] {
        assert_eq!(host(name).unwrap().node.hostname, name);
    }
    // Another name that is good takes the place of one that is not.
    for name in [
        "a&#10;b",
        "a\u{9b}31m",
        "a b",
        "-web",
        "wéb",
        "a\u{202e}b",
        "a;b",
        ".a",
    ] {
        assert_eq!(
            host(name).unwrap().node.hostname,
            "web-1.example.org",
            "{name}"
        );
        let both = |xml: String| {
            let fqdn = "<FQDN>web-1.example.org</FQDN>";
            xml.replace(own, &format!("<HOSTNAME>{name}</HOSTNAME>"))
                .replace(fqdn, "")
        };
        let xml = both(write(&hollow_facts(1, "a certificate")));
        let error = read(xml.as_bytes()).unwrap_err();
        assert!(
            matches!(error, InventoryError::Field { .. }),
            "{name}: {error}"
        );
        assert!(!error.to_string().contains(char::is_control), "{error}");
        // Hooks have no other letters.
        let json = format!(r#"[{{"rudder_override_hostname":"{name}"}}]"#);
        let custom = format!("<CUSTOM_PROPERTIES>{json}</CUSTOM_PROPERTIES><HOSTNAME>");
        assert_eq!(
            changed("<HOSTNAME>", &custom).unwrap().node.hostname,
            "web-1.example.org"
        );
    }
}

#[test]
fn systems_have_the_names_that_rudder_gives_them() {
    let name = |kernel: &str, name: &str, full: &str| {
        let mut facts = hollow_facts(1, "a certificate");
        facts.node.os.kernel = kernel.into();
        facts.node.os.name = name.into();
        facts.node.os.full_name = full.into();
        let found = read(write(&facts).as_bytes()).unwrap().node.os;
        // What is written of it is read as the same.
        facts.node.os = found.clone();
        assert_eq!(read(write(&facts).as_bytes()).unwrap().node.os, found);
        found.name
    };
    for (told, word) in [
        ("AlmaLinux", "AlmaLinux"),
        ("Amazon Linux", "AmazonLinux"),
        ("CentOS", "Centos"),
        ("Debian", "Debian"),
        ("Fedora", "Fedora"),
        ("Kali", "Kali"),
        ("LinuxMint", "Mint"),
        ("Oracle Linux Server", "Oracle"),
        ("Raspbian", "Raspbian"),
        ("RedHat", "Redhat"),
        ("Red Hat Enterprise Linux", "Redhat"),
        ("Rocky", "RockyLinux"),
        ("Scientific", "Scientific"),
        ("Slackware", "Slackware"),
        ("SUSE LINUX", "Suse"),
        ("openSUSE Leap", "Suse"),
        ("TUXEDO OS", "Tuxedo"),
        ("Ubuntu", "Ubuntu"),
        ("", "UnknownLinux"),
        ("Plan 9", "UnknownLinux"),
    ] {
        assert_eq!(name("Linux", told, "Windows 2019"), word, "{told}");
    }
    for (told, word) in [
        ("Microsoft Windows XP Professional", "WindowsXP"),
        ("Microsoft Windows 10 Pro", "Windows10"),
        ("Microsoft Windows 11 Enterprise Evaluation", "Windows11"),
        (
            "Microsoft Windows Server 2008 R2 Standard ",
            "Windows2008R2",
        ),
        ("Microsoft Windows Server 2012 Standard", "Windows2012"),
        ("Microsoft Windows Server 2012 R2 Standard", "Windows2012R2"),
        ("Microsoft Windows Server 2016 Datacenter", "Windows2016"),
        ("Microsoft Windows Server 2019 Standard", "Windows2019"),
        ("Microsoft Windows Server 2022 Standard", "Windows2022"),
        ("Microsoft Windows Server 2025 Datacenter", "Windows2025"),
        ("Microsoft Windows Server", "UnknownWindows"),
        ("", "UnknownWindows"),
    ] {
        assert_eq!(name("Windows", "Windows", told), word, "{told}");
    }
    assert_eq!(name("aix", "AIX", "AIX 7"), "AIX");
}

#[test]
fn the_version_of_an_agent_is_that_of_its_package_if_it_tells_none() {
    const TOLD: &str = "<AGENT_VERSION>8.3.1</AGENT_VERSION>";
    let xml = write(&hollow_facts(1, "a certificate"));
    let (begin, end) = (xml.find(TOLD).unwrap(), TOLD.len());
    let untold = [&xml[..begin], &xml[begin + end..]].concat();
    let own = untold.find("rudder-agent").unwrap();
    // Without its own package either.
    let bare = [
        &untold[..own],
        "other",
        &untold[own + "rudder-agent".len()..],
    ]
    .concat();
    let version = |kind: &str, packages: &[(&str, &str)]| {
        let records: String = packages
            .iter()
            .map(|(name, version)| {
                format!("<SOFTWARES><NAME>{name}</NAME><VERSION>{version}</VERSION></SOFTWARES>")
            })
            .collect();
        let text = bare.replace("</CONTENT>", &format!("{records}</CONTENT>"));
        let text = text.replace("cfengine-community", kind);
        read(text.as_bytes()).map(|facts| facts.node.agent.version)
    };
    let unix = "cfengine-community";
    for (kind, packages, expected) in [
        (unix, &[("rudder-agent", "8.1")][..], "8.1"),
        (unix, &[("rudder-agent.x86_64", "2.3")], "2.3"),
        (unix, &[("RUDDER-AGENT", "1"), ("rudder-agent", "2")], "1"),
        (unix, &[("rudder-agent", ""), ("rudder-agent", "2")], "2"),
        (
            "dsc",
            &[("rudder-agent", "1"), ("Rudder agent (DSC)", "7.3")],
            "7.3",
        ),
        ("dsc", &[("Rudder Agent (DSC)", "8.0.0")], "8.0.0"),
    ] {
        assert_eq!(
            version(kind, packages).as_deref(),
            Ok(expected),
            "{packages:?}"
        );
    }
    for packages in [&[][..], &[("Rudder agent (DSC)", "1")], &[("rudder", "1")]] {
        let missed = version(unix, packages);
        assert!(
            matches!(missed, Err(InventoryError::Missing { .. })),
            "{missed:?}"
        );
    }
    // What it tells itself counts first.
    let facts = changed("8.3.1</AGENT_VERSION>", "9.0</AGENT_VERSION>").unwrap();
    assert_eq!(facts.node.agent.version, "9.0");
}

#[test]
fn of_several_agents_the_first_whole_one_counts() {
    const SERVER: &str = "0f0b4c43-9d0d-4a5f-8f8f-1c113f2f0a32";
    let agent = |name: &str, owner: &str, server: &str| {
        format!(
            "<AGENT><AGENT_NAME>{name}</AGENT_NAME><OWNER>{owner}</OWNER>\
             <POLICY_SERVER_UUID>{server}</POLICY_SERVER_UUID><AGENT_CERT>c</AGENT_CERT></AGENT>"
        )
    };
    let with = |agents: &str| {
        let xml = write(&hollow_facts(1, "a certificate"));
        let end = xml.find("</AGENT>").unwrap() + "</AGENT>".len();
        let begin = xml.find("<AGENT>").unwrap();
        let text = [&xml[..begin], agents, &xml[end..]].concat();
        read(text.as_bytes()).map(|facts| (facts.node.agent.owner, facts.node.policy_server_id))
    };
    let told = |owner: &str, server: &str| Ok((owner.to_owned(), server.to_owned()));
    let (one, two) = (
        agent("community", "a", "root"),
        agent("community", "b", SERVER),
    );
    assert_eq!(with(&[&*one, &two].concat()), told("a", "root"));
    assert_eq!(with(&[&*two, &one].concat()), told("b", SERVER));
    // One that is not whole lends nothing to the others.
    let half = agent("community", "", "root");
    assert_eq!(with(&[&*half, &two].concat()), told("b", SERVER));
    let nova = agent("cfengine-nova", "a", "root");
    assert_eq!(with(&[&*nova, &two].concat()), told("b", SERVER));
    let field = "RUDDER/AGENT/OWNER";
    assert_eq!(with(&half), Err(InventoryError::Missing { field }));
    let field = "RUDDER/AGENT/AGENT_NAME";
    assert_eq!(with(""), Err(InventoryError::Missing { field }));
    // Of two nodes in one inventory nobody could say which it is of.
    let twice = changed("</CONTENT>", "<RUDDER><UUID>root</UUID></RUDDER></CONTENT>");
    assert!(
        matches!(
            twice,
            Err(InventoryError::Field {
                field: "RUDDER",
                ..
            })
        ),
        "{twice:?}"
    );
}

#[test]
fn parts_of_a_machine_that_are_alike_are_counted() {
    let part = |record: &str, fields: &[(&str, &str)]| {
        let fields: String = fields
            .iter()
            .map(|(name, text)| format!("<{name}>{text}</{name}>"))
            .collect();
        format!("<{record}>{fields}</{record}>")
    };
    let (fast, slow) = (
        [("NAME", "fast"), ("CORE", "1")],
        [("NAME", "slow"), ("CORE", "1")],
    );
    let records = [
        part("CPUS", &fast),
        part("CPUS", &slow),
        // Of processors the name alone tells.
        part("CPUS", &[("NAME", "fast"), ("CORE", "2")]),
        part("CPUS", &fast),
        part("SLOTS", &[("NAME", "s"), ("STATUS", "free")]),
        part("SLOTS", &[("NAME", "s"), ("STATUS", "used")]),
        part("SLOTS", &[("NAME", "s"), ("STATUS", "free")]),
        part("MEMORIES", &[("CAPTION", "m"), ("SPEED", "7")]),
        part("MEMORIES", &[("CAPTION", "m"), ("SPEED", "7")]),
        part("PROCESSES", &[("CMD", "p"), ("PID", "1")]),
        part("PROCESSES", &[("CMD", "p"), ("PID", "1")]),
    ];
    let facts = changed("</CONTENT>", &format!("{}</CONTENT>", records.concat())).unwrap();
    let all = |facts: &NodeFacts, kind, name: &str, wanted: &[&str]| -> Vec<(String, String)> {
        let text = |one: &BTreeMap<String, String>, key: &str| one.get(key).cloned();
        let found = facts.inventory.elements[&kind].iter().filter_map(|one| {
            let name = text(one, name).filter(|name| wanted.contains(&name.as_str()))?;
            Some((name, text(one, "quantity").unwrap_or_default()))
        });
        found.collect()
    };
    let counted = |name: &str, count: &str| (name.to_owned(), count.to_owned());
    let written = read(write(&facts).as_bytes()).unwrap();
    assert_eq!(written.inventory, facts.inventory);
    for facts in [&facts, &written] {
        let found = all(facts, ObjectType::Processor, "cpuName", &["fast", "slow"]);
        assert_eq!(found, [counted("fast", "3"), counted("slow", "1")]);
        let found = all(facts, ObjectType::Slot, "slotName", &["s"]);
        assert_eq!(found, [counted("s", "2"), counted("s", "1")]);
        let found = all(facts, ObjectType::Memory, "memoryCaption", &["m"]);
        assert_eq!(found, [counted("m", "1"), counted("m", "1")]);
        let found = all(facts, ObjectType::Process, "name", &["p"]);
        assert_eq!(found, [counted("p", ""), counted("p", "")]);
    }
}
