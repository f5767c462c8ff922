//! Rules for what a container may reach.

use std::net::IpAddr;

use diego::models::SecurityGroupRule;

use super::Problems;

/// Problems of one rule.
pub(super) fn rule(rule: &SecurityGroupRule) -> Problems {
    let mut problems = Problems::new();
    match rule.protocol.as_str() {
        "tcp" | "udp" => {
            ports(&mut problems, rule);
            problems.field_if(rule.icmp_info.is_some(), "icmp_info");
        }
        "icmp" | "icmpv6" => {
            no_ports(&mut problems, rule);
            let name = if rule.protocol == "icmp" {
                "icmp_info"
            } else {
                "icmpv6_info"
            };
            problems.field_if(rule.icmp_info.is_none(), name);
        }
        "all" => {
            no_ports(&mut problems, rule);
            problems.field_if(rule.icmp_info.is_some(), "icmp_info");
        }
        _ => problems.field("protocol"),
    }
    problems.field_if(rule.destinations.is_empty(), "destinations");
    let parts = rule.destinations.iter().flat_map(|list| list.split(','));
    for part in parts {
        if let Err(cause) = destination(part.trim()) {
            problems.field(&format!("destinations [ {cause} ]"));
        }
    }
    problems
}

fn ports(problems: &mut Problems, rule: &SecurityGroupRule) {
    match (&rule.port_range, rule.ports.is_empty()) {
        (Some(_), false) => problems.text("Invalid: ports and port_range provided"),
        (None, true) => problems.text("Missing required field: ports or port_range"),
        (None, false) => problems.field_if(rule.ports.contains(&0), "ports"),
        (Some(range), true) => {
            problems.field_if(range.start == 0, "port_range");
            problems.field_if(range.end == 0, "port_range");
            problems.field_if(range.start > range.end, "port_range");
        }
    }
}

fn no_ports(problems: &mut Problems, rule: &SecurityGroupRule) {
    problems.field_if(rule.port_range.is_some(), "port_range");
    problems.field_if(!rule.ports.is_empty(), "ports");
}

/// An address, a CIDR block, or two addresses with a dash between.
fn destination(text: &str) -> Result<(), String> {
    const INVALID: &str = "Invalid IP";
    let address = |text: &str| text.parse::<IpAddr>().map_err(|_| INVALID.to_owned());
    if let Some((from, to)) = text.split_once('-') {
        let (from, to) = (address(from)?, address(to)?);
        let ordered = from.is_ipv4() == to.is_ipv4() && from <= to;
        return if ordered {
            Ok(())
        } else {
            Err(INVALID.to_owned())
        };
    }
    if let Some((base, bits)) = text.split_once('/') {
        let most = match base.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return Err(format!("invalid CIDR address: {text}")),
        };
        let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let fits = digits && bits.parse::<u32>().is_ok_and(|bits| bits <= most);
        return if fits {
            Ok(())
        } else {
            Err(format!("invalid CIDR address: {text}"))
        };
    }
    address(text).map(drop)
}
