//! What the routing table costs: memory for each route, time of registrations and
//! lookups (processor time of the thread), and what a flood of registrations does to lookups.
//!
//! `cargo run --release -p routing --example table_cost -- 1000000`

#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

use std::borrow::Cow;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use routing::table::{Lookup, Registration, RouteKey, Table, TableSettings};
use wire::clock::{now, thread_cpu};

/// What routes look like.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// As http_route_populator sends them: all lead to one backend.
    Populated,
    /// Each route has an application with an instance of its own.
    Owned,
    /// The same, with tags, spread over 200 organisations of five spaces.
    Tagged,
}

/// What differs between registrations, in memory that is used again.
#[derive(Default)]
struct Texts {
    uri: String,
    identity: String,
    app: String,
    instance: String,
    organization: String,
    space: String,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let routes: u64 = arguments.next().map_or(1_000_000, |it| it.parse().unwrap());
    let only = arguments.next();
    for shape in [Shape::Populated, Shape::Owned, Shape::Tagged] {
        if only
            .as_ref()
            .is_none_or(|only| *only == format!("{shape:?}"))
        {
            measure(shape, routes);
        }
    }
}

fn measure(shape: Shape, routes: u64) {
    let before = resident();
    let table = Table::new(TableSettings::default());
    let mut texts = Texts::default();
    let wild = Registration {
        identity: "10.0.16.4:8080",
        ..Registration::default()
    };
    table.register_with(&RouteKey::new("*.example.org").unwrap(), &wild, now());
    let rounds = (1_000_000 / routes).max(1);
    // What it costs to make up the messages.
    let making = time(rounds * routes, |step| {
        let (key, registration) = message(shape, step % routes, &mut texts, &[]);
        black_box((&key, &registration));
    });
    let new = time(routes, |route| register(&table, shape, route, &mut texts)) - making;
    let memory = (resident() - before) as f64 / routes as f64;
    let unchanged = time(rounds * routes, |step| {
        register(&table, shape, step % routes, &mut texts);
    }) - making;
    println!("{shape:?}, {routes} routes");
    println!("  memory         {memory:8.0} bytes a route (resident)");
    println!("  registration   {new:8.0} ns new, {unchanged:.0} ns unchanged");

    let hosts: Vec<String> = (0..routes)
        .map(|index| format!("app-{}.apps.example.com", scattered(index, routes)))
        .collect();
    for (name, path, domain) in [
        ("hit", "/", ""),
        ("hit with path", "/some/path/of/a/request?and=query", ""),
        ("wildcard behind two labels", "/", ".example.org"),
        ("miss, two wild cards tried", "/", ".x"),
    ] {
        let renamed = |host: &String| match domain {
            "" => host.clone(),
            domain => host.replace(".example.com", domain),
        };
        let hosts: Vec<String> = hosts.iter().map(renamed).collect();
        println!(
            "  lookup         {:8.1} ns, {name}",
            lookups(&table, &hosts, path)
        );
    }
    let few = &hosts[..hosts.len().min(1000)];
    println!(
        "  lookup         {:8.1} ns, hit among 1,000 hot routes",
        lookups(&table, few, "/")
    );

    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    println!(
        "  lookups, nobody writes        {}",
        percentiles(&table, &hosts)
    );
    std::thread::scope(|threads| {
        let writer = threads.spawn({
            let (table, stop, done) = (&table, &stop, &done);
            move || {
                let mut texts = Texts::default();
                let mut route = 0;
                while !stop.load(Ordering::Relaxed) {
                    register(
                        table,
                        shape,
                        route % routes + route / routes % 2 * routes,
                        &mut texts,
                    );
                    route += 1;
                    done.store(route, Ordering::Relaxed);
                }
            }
        });
        let start = now();
        let text = percentiles(&table, &hosts);
        let rate = done.load(Ordering::Relaxed) as f64 * 1e9 / (now() - start) as f64;
        println!("  lookups, {rate:9.0} writes a second {text}");
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}

/// Nanoseconds of a lookup among all hosts.
fn lookups(table: &Table, hosts: &[String], path: &str) -> f64 {
    let count = hosts.len() as u64;
    time((1_000_000 / count).max(1) * count, |step| {
        let host = &hosts[(step % count) as usize];
        black_box(table.lookup(host.as_bytes(), path.as_bytes()));
    })
}

/// Nanoseconds of the processor that a step takes.
fn time(steps: u64, mut step: impl FnMut(u64)) -> f64 {
    let start = thread_cpu();
    (0..steps).for_each(&mut step);
    (thread_cpu() - start).as_nanos() as f64 / steps as f64
}

fn percentiles(table: &Table, hosts: &[String]) -> String {
    let lookups = 2_000_000;
    let mut times: Vec<u32> = Vec::with_capacity(lookups);
    for host in hosts.iter().cycle().take(lookups) {
        let start = now();
        let found = table.lookup(host.as_bytes(), b"/index.html");
        let took = now() - start;
        assert!(matches!(found, Lookup::Found(_)));
        times.push(u32::try_from(took).unwrap_or(u32::MAX));
    }
    times.sort_unstable();
    let at = |share: f64| times[((lookups - 1) as f64 * share) as usize];
    format!(
        "p50 {} ns, p99 {} ns, p99.9 {} ns, p99.99 {} ns, max {} µs",
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0) / 1000
    )
}

fn register(table: &Table, shape: Shape, route: u64, texts: &mut Texts) {
    if !matches!(shape, Shape::Tagged) {
        let (key, registration) = message(shape, route, texts, &[]);
        table.register_with(&key, &registration, now());
        return;
    }
    let (_, _) = message(shape, route, texts, &[]);
    let texts_of_tags = Texts {
        app: texts.app.clone(),
        instance: texts.instance.clone(),
        organization: texts.organization.clone(),
        space: texts.space.clone(),
        ..Texts::default()
    };
    let borrow = |name: &'static str, value: &'static str| (Cow::from(name), Cow::from(value));
    let own = &texts_of_tags;
    let tags = [
        (Cow::from("app_id"), Cow::from(&own.app)),
        borrow("component", "route-emitter"),
        (Cow::from("organization_id"), Cow::from(&own.organization)),
        (Cow::from("process_id"), Cow::from(&own.app)),
        (Cow::from("process_instance_id"), Cow::from(&own.instance)),
        borrow("process_type", "web"),
        (Cow::from("source_id"), Cow::from(&own.app)),
        (Cow::from("space_id"), Cow::from(&own.space)),
    ];
    let (key, registration) = message(shape, route, texts, &tags);
    table.register_with(&key, &registration, now());
}

fn message<'a>(
    shape: Shape,
    route: u64,
    texts: &'a mut Texts,
    tags: &'a [(Cow<'a, str>, Cow<'a, str>)],
) -> (RouteKey<'a>, Registration<'a>) {
    let Texts {
        uri,
        identity,
        app,
        instance,
        organization,
        space,
    } = texts;
    write_to(uri, format_args!("app-{route}.apps.example.com"));
    if matches!(shape, Shape::Populated) {
        let key = RouteKey::new(uri).unwrap();
        let registration = Registration {
            identity: "10.0.16.4:8080",
            ..Registration::default()
        };
        return (key, registration);
    }
    let [a, b, c, d] = [
        route >> 24 & 255,
        route >> 16 & 255,
        route >> 8 & 255,
        route & 255,
    ];
    write_to(identity, format_args!("10.{b}.{c}.{d}:{}", 61000 + a));
    write_to(app, format_args!("{route:08x}-83f1-4f7c-9a39-5c1d2e3f4a5b"));
    write_to(instance, format_args!("{route:08x}-1a2b-4c3d-8e5f-0123"));
    write_to(
        organization,
        format_args!("{:08x}-0000-4000-8000-0000000000aa", route % 200),
    );
    write_to(
        space,
        format_args!("{:08x}-0000-4000-8000-0000000000bb", route % 1000),
    );
    let registration = Registration {
        identity,
        app,
        instance_id: instance,
        instance_index: "0",
        zone: ["z1", "z2", "z3"][(route % 3) as usize],
        stale_after: Duration::from_secs(120),
        tags: (!tags.is_empty()).then_some(tags),
        ..Registration::default()
    };
    (RouteKey::new(uri).unwrap(), registration)
}

fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.clear();
    text.write_fmt(arguments).unwrap();
}

/// The numbers below `count` in an order in which neighbours are far apart.
fn scattered(index: u64, count: u64) -> u64 {
    (index * 7_919_993) % count
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
