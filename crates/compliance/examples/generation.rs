//! What policy generation costs, in time and memory: of a whole fleet, and of one change.
//!
//! `cargo run --release -p compliance --example generation -- [NODES [THREADS]]`, 12,000 nodes
//! and 2 threads without arguments. The definitions are those of `realistic`.

mod realistic;

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::inventory::Inventory;
use compliance::model::node::{Node, NodeKind};
use compliance::model::query::Criterion;
use compliance::policy::generation::{Change, Engine, NodeUpdate, Outcome, Settings};
use compliance::policy::node_policy::{ExpectedReports, NodePolicy, PolicyDocument};
use realistic::{ALONE, ALONE_TECHNIQUE, DIRECTIVES, definitions, directive, group, properties};

/// Packages in the inventory of a node.
const PACKAGES: usize = 300;

fn node_id(number: usize) -> String {
    // As random as uuids are, and always the same.
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-4{:03x}-8000-{number:012x}",
        mixed >> 32,
        mixed >> 16 & 0xffff,
        mixed & 0xfff
    )
}

fn node(number: usize, release: &str) -> Change {
    let mut node = Node::new(
        node_id(number),
        format!("srv-{number:05}.dc{}.example.org", number % 7),
    );
    node.os.kernel = "Linux".into();
    node.os.name = ["Debian", "Redhat", "Ubuntu"][number % 3].into();
    node.os.version = format!("{}.{}", 8 + number % 5, number % 9);
    node.ram = Some((4 + number as u64 % 60) << 30);
    node.ip_addresses = vec![format!(
        "10.{}.{}.{}",
        number >> 16,
        number >> 8 & 255,
        number & 255
    )];
    node.properties = properties(number, release);
    Change::SetNode(Arc::new(node))
}

fn inventory(number: usize) -> Change {
    let mut inventory = Inventory::default();
    for package in 0..PACKAGES {
        let name = format!("package-{}", (package * 7 + number % 13) % 900);
        let version = format!("{}.{}", package % 9, number % 4);
        let fields = [("cn", name.as_str()), ("softwareVersion", version.as_str())];
        inventory.push(ObjectType::Software, &fields);
    }
    Change::SetInventory {
        node: node_id(number),
        inventory,
    }
}

/// A line of the kernel's account of this process, in MiB.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|one| one.strip_prefix(line));
    let kib = found.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Counts what is written.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Time and processor time since a moment.
struct Watch(Instant, f64);

impl Watch {
    fn start() -> Self {
        Self(Instant::now(), processor())
    }
}

/// Seconds of processor time of this process, all threads, in hundredths.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let used = after.split_whitespace().skip(11).take(2);
    let ticks: f64 = used.filter_map(|text| text.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn show(what: &str, since: &Watch, outcome: &Outcome) {
    println!(
        "{what}: {:.1} ms, {:.2} s of processor time; {} generated, {} updated, {} failed",
        since.0.elapsed().as_secs_f64() * 1e3,
        processor() - since.1,
        outcome.generated,
        outcome.updates.len(),
        outcome.failed
    );
    for step in &outcome.steps {
        let note = if step.summed {
            " (summed over threads)"
        } else {
            ""
        };
        println!(
            "  {:<16} {:>10.2} ms{note}",
            step.name,
            step.duration.as_secs_f64() * 1e3
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let nodes: usize = arguments.next().map_or(Ok(12_000), |text| text.parse())?;
    let threads: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let begin = Instant::now();
    let clock = move || begin.elapsed();
    let mut engine = Engine::new(Settings::default());

    let start = Instant::now();
    // One after the other, as nodes come: what is read is not kept.
    for number in 0..nodes {
        engine.apply(vec![node(number, "1"), inventory(number)])?;
    }
    let one = Criterion::new(
        ObjectType::Node,
        "nodeId",
        Comparator::Eq,
        node_id(nodes / 2),
    );
    let mut root = Node::new("root", "server.example.org");
    root.kind = NodeKind::Root;
    engine.apply(vec![Change::SetNode(Arc::new(root))])?;
    engine.apply(definitions(one).changes())?;
    println!(
        "{nodes} nodes read in {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );

    let start = Watch::start();
    let outcome = engine.generate(1_767_225_600, threads, &clock);
    show("full generation", &start, &outcome);
    let all = outcome.updates;
    let values: u64 = engine.all_issued().map(|policy| policy.value_count).sum();
    println!("{values} components");
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );

    let mut change = |what: &str, changes| -> Result<(), Box<dyn std::error::Error>> {
        let start = Watch::start();
        engine.apply(changes)?;
        let outcome = engine.generate(1_767_225_700, threads, &clock);
        show(what, &start, &outcome);
        Ok(())
    };
    let of_one = directive(ALONE, ALONE_TECHNIQUE, "second");
    let of_one = vec![Change::SetDirective(of_one)];
    change("one directive's value, one node", of_one)?;
    change("one node's property", vec![node(nodes / 2, "2")])?;
    let ubuntu = Criterion::new(ObjectType::Node, "osName", Comparator::Eq, "Ubuntu");
    change(
        "one group's query",
        vec![Change::SetGroup(group("group7", vec![ubuntu]))],
    )?;
    change("one node's inventory", vec![inventory(1)])?;
    let of_role = directive("d3-4", 3 * DIRECTIVES + 4, "volume-new");
    let of_role = vec![Change::SetDirective(of_role)];
    change("one directive's value, the nodes of a role", of_role)?;

    let start = Instant::now();
    let copy = engine.clone();
    println!(
        "a copy of all, on which a change is tried: {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    drop(copy);

    let size = |_: &NodeUpdate, policy: Option<&NodePolicy>| {
        let (mut expected, mut document) = (Count(0), Count(0));
        if let Some(policy) = policy {
            // What is serialised holds nothing that JSON has not.
            let _ = serde_json::to_writer(&mut expected, &ExpectedReports(policy));
            let _ = serde_json::to_writer(&mut document, &PolicyDocument(policy));
        }
        [expected.0, document.0]
    };
    let start = Instant::now();
    let (mut sizes, mut overtaken) = ([0, 0], 0);
    for part in all.chunks(32) {
        for one in engine.of_whole(part, threads, size) {
            let one = one.unwrap_or_else(|| {
                overtaken += 1;
                [0, 0]
            });
            sizes = [sizes[0] + one[0], sizes[1] + one[1]];
        }
    }
    println!(
        "all of them but {overtaken} with their texts again, as JSON: {:.0} MB of expected reports, {:.0} MB of \
         policies in {:.1} ms",
        sizes[0] as f64 / 1e6,
        sizes[1] as f64 / 1e6,
        start.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );
    Ok(())
}
