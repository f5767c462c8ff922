//! What a report costs from its upload to the sums of a fleet, and what a component takes of
//! memory: `cargo run --release -p compliance --example compliance_rate [NODES] [COMPONENTS]`.
//!
//! Nodes have directives of 22 components each; a quarter of the values are a node's own, as
//! paths with host names in them are. Of the reports 5 % are repairs and 2 % errors. Each run is
//! made, signed and packed beforehand; then the steps are timed one after another, by the CPU
//! time of the process, for as many runs as one pass takes. Memory is what the process gains.

use std::error::Error;
use std::fmt::Write;
use std::io::Write as _;

use compliance::model::mode::{ComplianceMode, GlobalPolicyMode, Modes};
use compliance::model::schedule::AgentRun;
use compliance::reports::expected::{
    Component, ExpectedDirective, ExpectedReports, ExpectedRule, ExpectedValue,
};
use compliance::reports::fleet::{Fleet, RunOutcome};
use compliance::reports::moment::Moment;
use compliance::reports::run_info::{Packing, RunInfo};
use compliance::reports::runlog::{Limits, RunLog};
use compliance::reports::signature::{NodeCertificate, SigningKey, sign, verify};
use compliance::reports::upload::unpack;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair};

/// Components of a directive.
const DIRECTIVE: usize = 22;

/// Nodes whose runs are made and timed; all nodes have expected reports and a run.
const SAMPLE: usize = 400;

/// The first run, in milliseconds since 1970, and from run to run.
const START: i64 = 1_780_000_000_000;
const INTERVAL: i64 = 300_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (nodes, components) = (number(0, 20_000)?, number(1, 1_100)?);
    let mut fleet = Fleet::default();
    let before = resident()?;
    let cpu = cpu_seconds()?;
    for node in 0..nodes {
        fleet.configure(&name(node), "c1", START, &expected(node, components), START)?;
    }
    let configured = cpu_seconds()? - cpu;
    for node in 0..nodes {
        let text = log(node, components, 0)?;
        count(&mut fleet, node, text.as_bytes(), START)?;
    }
    let after = resident()?;
    let all = nodes * components;
    println!("{nodes} nodes, {components} components each, in directives of {DIRECTIVE}");
    println!(
        "expected reports made and held: {:.0} ns a component",
        configured * 1e9 / all as f64
    );
    println!(
        "memory: {:.1} bytes a component, {:.0} MB in all",
        (after - before) as f64 / all as f64,
        (after - before) as f64 / 1e6,
    );
    let (of_nodes, of_shapes) = fleet.bytes();
    println!(
        "  by its parts: nodes {} MB, shared shapes {} kB",
        of_nodes / 1_000_000,
        of_shapes / 1000
    );

    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let certificate = CertificateParams::default().self_signed(&key)?;
    let certificate = NodeCertificate::from_der(certificate.der())?;
    let key = SigningKey::from_pem(key.serialize_pem().as_bytes())?;
    println!("signed with P-256; ns a report");
    println!("unpack  verify   parse   match and sum     all");
    for round in 1..=5 {
        let (mut packed, mut plain) = (Vec::new(), Vec::new());
        for node in 0..SAMPLE.min(nodes) {
            let text = log(node, components, round)?;
            let time = Timestamp::from_millisecond(START + round * INTERVAL)?;
            let signed = sign(text.as_bytes(), &key, &certificate, time)?;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&signed)?;
            packed.push(encoder.finish()?);
        }
        let reports = (packed.len() * components) as f64;
        let mut times = vec![cpu_seconds()?];
        for upload in &packed {
            plain.push(unpack(upload, Packing::Gzip, 64 << 20)?);
        }
        times.push(cpu_seconds()?);
        let texts: Vec<_> = plain
            .iter()
            .map(|message| verify(message, &certificate))
            .collect::<Result<_, _>>()?;
        times.push(cpu_seconds()?);
        let texts: Vec<_> = texts
            .iter()
            .map(|text| String::from_utf8_lossy(text))
            .collect();
        let runs: Vec<_> = (0..)
            .zip(&texts)
            .map(|(node, text)| {
                RunLog::parse(info(node)?, text, &Limits::default()).map_err(Into::into)
            })
            .collect::<Result<_, Box<dyn Error>>>()?;
        times.push(cpu_seconds()?);
        for run in &runs {
            let outcome = fleet.run(run, START + round * INTERVAL);
            if !matches!(outcome, RunOutcome::Counted { .. }) {
                return Err(format!("a run was not counted: {outcome:?}").into());
            }
        }
        times.push(cpu_seconds()?);
        let step = |from: usize, to: usize| (times[to] - times[from]) * 1e9 / reports;
        println!(
            "{:6.0}{:8.0}{:8.0}{:16.0}{:8.0}",
            step(0, 1),
            step(1, 2),
            step(2, 3),
            step(3, 4),
            step(0, 4),
        );
    }
    println!("global compliance: {:?} %", fleet.global().global_percent());
    Ok(())
}

fn count(fleet: &mut Fleet, node: usize, text: &[u8], now: i64) -> Result<(), Box<dyn Error>> {
    let text = String::from_utf8_lossy(text);
    fleet.run(&RunLog::parse(info(node)?, &text, &Limits::default())?, now);
    Ok(())
}

fn name(node: usize) -> String {
    format!("{node:08x}-40bc-4b86-b6dc-084488fc906b")
}

fn info(node: usize) -> Result<RunInfo, Box<dyn Error>> {
    Ok(RunInfo::from_file_name(&format!("{}_2026-05-28T20:26:40Z.log", name(node)))?.0)
}

/// A value of a component: its text on the node, and as it was written.
fn value(node: usize, component: usize) -> (String, String) {
    let place = component % DIRECTIVE;
    if component.is_multiple_of(4) {
        let unexpanded = format!("/etc/app/${{node.hostname}}/{place}.conf");
        (
            format!("/etc/app/node-{node}.example.com/{place}.conf"),
            unexpanded,
        )
    } else {
        let same = format!("/etc/app/settings/{component}.conf");
        (same.clone(), same)
    }
}

fn expected(node: usize, components: usize) -> ExpectedReports {
    let directives = (0..components.div_ceil(DIRECTIVE)).map(|directive| {
        let first = directive * DIRECTIVE;
        let components = (first..components.min(first + DIRECTIVE)).map(|component| {
            let (expanded, unexpanded) = value(node, component);
            Component::Values {
                name: format!("File content {}", component % DIRECTIVE),
                values: vec![ExpectedValue::Key {
                    expanded,
                    unexpanded,
                }],
            }
        });
        ExpectedRule {
            id: rule(directive),
            directives: vec![ExpectedDirective {
                id: format!("928d47b9-0486-4abc-8b2c-{directive:012}"),
                policy_mode: None,
                types: Vec::new(),
                schedule: None,
                components: components.collect(),
            }],
        }
    });
    ExpectedReports {
        modes: Modes {
            global: GlobalPolicyMode::default(),
            node: None,
            compliance: ComplianceMode::FullCompliance,
            run: AgentRun::default(),
            node_run: None,
        },
        rules: directives.collect(),
        overrides: Vec::new(),
    }
}

fn rule(directive: usize) -> String {
    format!("32377fd7-02fd-43d0-aab7-{:012}", directive / 5)
}

fn log(node: usize, components: usize, round: i64) -> Result<String, Box<dyn Error>> {
    let start = Moment::utc(Timestamp::from_millisecond(START + round * INTERVAL)?);
    let (node_name, run_start) = (name(node), start.as_run_start().to_string());
    let mut text = String::with_capacity(components * 280);
    let marker = |text: &mut String, component: &str| {
        writeln!(
            text,
            "{start} R: @@Common@@control@@rudder@@run@@0@@{component}@@c1@@{run_start}##{node_name}@#Run"
        )
    };
    marker(&mut text, "start")?;
    for component in 0..components {
        let directive = component / DIRECTIVE;
        let chance = (node * 31 + component * 17 + round as usize * 7) % 100;
        let kind = match chance {
            0..5 => "result_repaired",
            5..7 => "result_error",
            _ => "result_success",
        };
        let (key, _) = value(node, component);
        writeln!(
            text,
            "{start} R: @@fileContent@@{kind}@@{}@@928d47b9-0486-4abc-8b2c-{directive:012}@@0@@\
             File content {}@@{key}@@{run_start}##{node_name}@#The content of the file is as it \
             should be",
            rule(directive),
            component % DIRECTIVE,
        )?;
    }
    marker(&mut text, "end")?;
    Ok(text)
}

/// CPU time of the process, user and system.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// Bytes of memory of the process.
fn resident() -> Result<usize, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096)
}
