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

#[test]
fn parts_without_a_name_of_their_own_have_that_of_rudder() {
    let records = "<SLOTS><NAME>PCI1</NAME><DESIGNATION>x16</DESIGNATION></SLOTS>\
         <SLOTS><DESIGNATION>J5</DESIGNATION></SLOTS>\
         <SOUNDS><NAME>Audio</NAME><MANUFACTURER>Intel</MANUFACTURER></SOUNDS>\
         <SOUNDS><MANUFACTURER>Realtek</MANUFACTURER></SOUNDS>\
         <VIDEOS><RESOLUTION>640x480</RESOLUTION></VIDEOS>\
         <PORTS><NAME>Not Specified</NAME><TYPE>USB</TYPE></PORTS>\
         <PORTS><NAME>COM 1</NAME><TYPE>Serial</TYPE></PORTS>\
         <NETWORKS><TYPE>wifi</TYPE><MACADDR>00:00:5e:00:53:01</MACADDR></NETWORKS>";
    let facts = changed("</CONTENT>", &format!("{records}</CONTENT>")).unwrap();
    for (kind, attribute, expected) in [
        (ObjectType::Slot, "slotName", &["PCI1 - x16", "J5"][..]),
        (
            ObjectType::SoundCard,
            "soundCardName",
            &["Audio - Intel", "Realtek"],
        ),
        (ObjectType::VideoCard, "videoCardName", &["640x480"]),
        (
            ObjectType::Port,
            "portName",
            &["Not Specified (USB)", "COM 1"],
        ),
        (ObjectType::NetworkInterface, "networkInterface", &["wifi"]),
    ] {
        let elements = facts.inventory.elements[&kind].iter();
        let found: Vec<&str> = elements
            .filter_map(|one| one.get(attribute).map(String::as_str))
            .collect();
        assert!(found.ends_with(expected), "{attribute}: {found:?}");
    }
    // What is written of it is read as the same.
    assert_eq!(
        read(write(&facts).as_bytes()).unwrap().inventory,
        facts.inventory
    );
}

#[test]
fn blanks_in_a_row_are_one() {
    let name = "Intel(R)  Xeon(R) CPU\t    X5650  @ 2.67GHz";
    let custom = r#"<CUSTOM_PROPERTIES>[{"kept":"a  b"}]</CUSTOM_PROPERTIES>"#;
    let records = format!("<CPUS><NAME> {name} </NAME></CPUS></CONTENT>");
    let xml = write(&hollow_facts(1, "a certificate"));
    let xml = xml.replacen("<HOSTNAME>", &format!("{custom}<HOSTNAME>"), 1);
    let facts = read(xml.replace("</CONTENT>", &records).as_bytes()).unwrap();
    let processors = &facts.inventory.elements[&ObjectType::Processor];
    let found = processors.last().unwrap()["cpuName"].as_str();
    assert_eq!(found, "Intel(R) Xeon(R) CPU X5650 @ 2.67GHz");
    // A hook's text is its own.
    assert_eq!(facts.node.properties[0].value, "a  b");
}

#[test]
fn an_inventory_of_aix_tells_its_kernel_as_hardware() {
    let xml = write(&hollow_facts(1, "a certificate"));
    let end = "</OPERATINGSYSTEM>";
    let (from, to) = (
        xml.find("<OPERATINGSYSTEM>").unwrap(),
        xml.find(end).unwrap(),
    );
    let with = |kernel: &str, hardware: &str| {
        let system = format!(
            "<OPERATINGSYSTEM><KERNEL_NAME>{kernel}</KERNEL_NAME><NAME>AIX</NAME>\
             <SERVICE_PACK>06-1316</SERVICE_PACK>{end}<HARDWARE>{hardware}</HARDWARE>"
        );
        let text = [&xml[..from], &system, &xml[to + end.len()..]].concat();
        read(text.as_bytes()).map(|facts| facts.node.os)
    };
    let version = "<OSVERSION>6.1.0.0</OSVERSION>";
    let system = with("AIX", version).unwrap();
    assert_eq!(system.kernel_version, "6.1.0.0");
    assert_eq!(system.service_pack.as_deref(), Some("6"));
    let field = "OPERATINGSYSTEM/KERNEL_VERSION";
    for (kernel, hardware) in [("AIX", ""), ("linux", version)] {
        assert_eq!(
            with(kernel, hardware).unwrap_err(),
            InventoryError::Missing { field },
            "{kernel}"
        );
    }
}

#[test]
fn a_policy_server_may_have_any_identity() {
    let server = "<POLICY_SERVER_UUID>root</POLICY_SERVER_UUID>";
    let facts = changed(server, &server.replace("root", "root_1")).unwrap();
    assert_eq!(facts.node.policy_server_id, "root_1");
    let odd = server.replace("root", "a&#10;b");
    assert!(matches!(
        changed(server, &odd),
        Err(InventoryError::Model(_))
    ));
}
