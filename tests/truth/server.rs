//! Servers whose behaviour is planted: what they do, and when, is known beforehand, and what the machine
//! made of it is written down by the server itself.
//!
//! A server runs as a process of its own (`truth serve …`), so that it can be killed, and so that the
//! laboratory knows it only by its wire. Times count from the first request. Answers are due at absolute
//! moments, so a busy machine makes them late by what it is late, and never by a sum of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::free_port::free_port;

/// What a server does, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plant {
    /// From a request to its answer.
    pub(crate) latency_ms: u64,
    /// Requests that are worked on at once; others queue. 0: all.
    pub(crate) pool: usize,
    /// From when until when it stands still.
    pub(crate) freezes_ms: Vec<(u64, u64)>,
    /// From when until when its process does not exist.
    pub(crate) dead_ms: Option<(u64, u64)>,
    /// Until when answers take `slow_ms`.
    pub(crate) slow_until_ms: u64,
    pub(crate) slow_ms: u64,
    /// Every nth answer says that it is longer than it is. 0: none.
    pub(crate) lie_every: u64,
    /// Every nth answer is preceded by the end of its connection, and is never given. 0: none.
    pub(crate) close_every: u64,
    /// Every answer sends its client elsewhere.
    pub(crate) redirects: bool,
    /// How much longer each request takes for each second that passed.
    pub(crate) grows_ms: u64,
    /// A child that burns one processor and holds this many MiB. 0: none.
    pub(crate) child_mib: usize,
}

impl Plant {
    fn to_json(&self) -> Value {
        json!({
            "latency": self.latency_ms, "pool": self.pool, "freezes": self.freezes_ms,
            "dead": self.dead_ms, "slow_until": self.slow_until_ms, "slow": self.slow_ms,
            "lie_every": self.lie_every, "close_every": self.close_every,
            "redirects": self.redirects, "grows": self.grows_ms, "child_mib": self.child_mib,
        })
    }

    fn of_json(value: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let pair = |value: &Value| (number(&value[0]), number(&value[1]));
        let freezes = value["freezes"].as_array().cloned().unwrap_or_default();
        Self {
            latency_ms: number(&value["latency"]),
            pool: number(&value["pool"]) as usize,
            freezes_ms: freezes.iter().map(pair).collect(),
            dead_ms: value["dead"].is_array().then(|| pair(&value["dead"])),
            slow_until_ms: number(&value["slow_until"]),
            slow_ms: number(&value["slow"]),
            lie_every: number(&value["lie_every"]),
            close_every: number(&value["close_every"]),
            redirects: value["redirects"] == true,
            grows_ms: number(&value["grows"]),
            child_mib: number(&value["child_mib"]) as usize,
        }
    }

    /// The words after the program's name with which it serves on `address`. It writes what happens to
    /// `diary`; the plant is left in `folder`.
    pub(crate) fn arguments(&self, address: &str, diary: &Path, folder: &Path) -> Vec<String> {
        let file = folder.join("plant.json");
        fs::write(&file, self.to_json().to_string()).expect("a plant written");
        let [diary, file] = [diary, &file].map(|path| path.display().to_string());
        vec!["serve".to_owned(), address.to_owned(), diary, file]
    }
}

/// A server under way. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    diary: PathBuf,
}

impl Server {
    pub(crate) fn start(plant: &Plant, folder: &Path) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let diary = folder.join("diary.jsonl");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(plant.arguments(&address.to_string(), &diary, folder))
            .spawn()
            .expect("the server starts");
        let server = Self {
            child,
            address,
            diary,
        };
        server.wait_for("listening");
        server
    }

    fn wait_for(&self, what: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        while Diary::read(&self.diary).first(what).is_none() {
            assert!(Instant::now() < until, "the planted server is not {what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn diary(&self) -> Diary {
        Diary::read(&self.diary)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What it started dies with it: it asked the kernel for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server wrote down of itself.
pub(crate) struct Diary(Vec<Value>);

impl Diary {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Self(lines.collect())
    }

    /// When something happened first, in seconds since the first request.
    pub(crate) fn first(&self, what: &str) -> Option<f64> {
        let found = self.0.iter().find(|line| line["what"] == what)?;
        found["at_s"].as_f64()
    }

    fn count(&self, what: &str) -> usize {
        self.0.iter().filter(|line| line["what"] == what).count()
    }

    /// By how much the server's answers were late.
    pub(crate) fn lateness(&self) -> Lateness {
        let last = self.0.iter().rfind(|line| line["what"] == "lateness");
        let field = |name: &str| {
            last.and_then(|line| line[name].as_f64())
                .unwrap_or_default()
        };
        let both =
            |stat: &str| field(&format!("read_{stat}_s")) + field(&format!("answer_{stat}_s"));
        Lateness {
            p50_s: both("p50"),
            p99_s: both("p99"),
            max_s: both("max"),
        }
    }
}

/// By how much a server's answers were later than planned, in seconds: an upper bound of what the machine
/// added to this percentile of latency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lateness {
    pub(crate) p50_s: f64,
    pub(crate) p99_s: f64,
    pub(crate) max_s: f64,
}

/// `truth serve ADDRESS DIARY FILE`, the file with the plant.
pub(crate) fn serve(words: &[String]) {
    let [address, diary, plant] = words else {
        panic!("truth serve ADDRESS DIARY FILE");
    };
    end_with_parent();
    // What is planted should be what happens, on a busy machine as well. Only root may.
    let _ = rustix::process::setpriority_process(None, -20);
    let text = fs::read_to_string(plant).expect("a plant");
    let plant = Plant::of_json(&serde_json::from_str(&text).expect("a plant"));
    let diary = PathBuf::from(diary);
    if let Some((from, to)) = plant.dead_ms {
        return serve_and_die(address, &diary, &plant, from, to);
    }
    let _burning = (plant.child_mib > 0).then(|| burn_in_a_child(plant.child_mib));
    Serving::new(plant, diary).listen(address);
}

/// `truth burn MIB`: uses one processor and so much memory until its parent ends.
pub(crate) fn burn(words: &[String]) {
    end_with_parent();
    let _ = rustix::process::setpriority_process(None, 0);
    let mib: usize = words[0].parse().expect("a number of MiB");
    let mut held = vec![0_u8; mib << 20];
    held.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    loop {
        std::hint::black_box(&mut held);
    }
}

fn burn_in_a_child(mib: usize) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["burn", &mib.to_string()])
        .spawn()
        .expect("a child")
}

fn end_with_parent() {
    let parent = nix::unistd::getppid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .expect("a signal for the end of the parent");
    if nix::unistd::getppid() != parent {
        std::process::exit(0);
    }
}

/// Serves in a child, kills it at its time, and starts another.
fn serve_and_die(address: &str, diary: &Path, plant: &Plant, from: u64, to: u64) {
    let alive = Plant {
        dead_ms: None,
        ..plant.clone()
    };
    let folder = diary.with_extension("alive");
    fs::create_dir_all(&folder).expect("a folder");
    let start = || {
        Command::new(std::env::current_exe().expect("this program"))
            .args(alive.arguments(address, diary, &folder))
            .spawn()
            .expect("the server starts")
    };
    let mut child = start();
    while Diary::read(diary).first("first request").is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    let begun = Instant::now();
    let at = |ms| thread::sleep(Duration::from_millis(ms).saturating_sub(begun.elapsed()));
    at(from);
    // When exactly it died, and when it listened again, lies between two notes each.
    note(diary, "killing", begun.elapsed());
    child.kill().expect("a child to kill");
    child.wait().expect("its end");
    note(diary, "killed", begun.elapsed());
    at(to);
    note(diary, "starting", begun.elapsed());
    let mut again = start();
    while Diary::read(diary).count("listening") < 2 {
        thread::sleep(Duration::from_millis(2));
    }
    note(diary, "back", begun.elapsed());
    again.wait().expect("its end");
}

fn note(diary: &Path, what: &str, at: Duration) {
    write_line(diary, &json!({ "what": what, "at_s": at.as_secs_f64() }));
}

fn write_line(diary: &Path, line: &Value) {
    let file = fs::OpenOptions::new().create(true).append(true).open(diary);
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .expect("a line in the diary");
}

struct Sorted(Vec<Duration>);

impl Sorted {
    fn of(times: &[Duration]) -> Self {
        let mut times = times.to_vec();
        times.sort_unstable();
        Self(times)
    }

    fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let found = self.0.get((last as f64 * share).ceil() as usize);
        found.copied().unwrap_or_default().as_secs_f64()
    }
}

struct Serving {
    plant: Plant,
    diary: PathBuf,
    first: OnceLock<Instant>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When each worker of the pool is free, since the first request.
    free: Vec<Duration>,
    requests: u64,
    answers: u64,
    /// By how much later than due each answer was written.
    late: Vec<Duration>,
    /// By how much later than due a thread of this process woke, time after time: so late may a request
    /// have been read.
    woken_late: Vec<Duration>,
}

impl Serving {
    fn new(plant: Plant, diary: PathBuf) -> Arc<Self> {
        let free = vec![Duration::ZERO; plant.pool];
        Arc::new(Self {
            plant,
            diary,
            first: OnceLock::new(),
            state: Mutex::new(State {
                free,
                ..State::default()
            }),
        })
    }

    fn listen(self: &Arc<Self>, address: &str) {
        let listener = TcpListener::bind(address).expect("the port");
        note(&self.diary, "listening", Duration::ZERO);
        let books = Arc::clone(self);
        thread::spawn(move || books.keep_books());
        for stream in listener.incoming().flatten() {
            let serving = Arc::clone(self);
            // Small stacks: a thousand connections are a thousand threads.
            let spawned = thread::Builder::new()
                .stack_size(128 << 10)
                .spawn(move || serving.converse(stream));
            spawned.expect("a thread");
        }
    }

    /// Writes down how late this process is, again and again: it will be killed.
    fn keep_books(&self) {
        const TICK: Duration = Duration::from_millis(2);
        for tick in 1.. {
            let slept = Instant::now();
            thread::sleep(TICK);
            let late = slept.elapsed().saturating_sub(TICK);
            let mut state = self.state();
            if state.late.is_empty() {
                continue;
            }
            state.woken_late.push(late);
            if tick % 100 == 0 {
                let (read, answer) = (Sorted::of(&state.woken_late), Sorted::of(&state.late));
                drop(state);
                let line = json!({
                    "what": "lateness",
                    // Of a sum of two, at most 1 % are larger than the sum of what 0.5 % of each are.
                    "read_p50_s": read.at(0.75), "read_p99_s": read.at(0.995), "read_max_s": read.at(1.0),
                    "answer_p50_s": answer.at(0.75), "answer_p99_s": answer.at(0.995), "answer_max_s": answer.at(1.0),
                });
                write_line(&self.diary, &line);
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(mut out) = stream.try_clone() else {
            return;
        };
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        for _ in lines.filter(String::is_empty) {
            let first = self.first.get_or_init(|| {
                note(&self.diary, "first request", Duration::ZERO);
                Instant::now()
            });
            if self.closes() {
                return;
            }
            let (due, lies) = self.answer_due(first.elapsed());
            thread::sleep(due.saturating_sub(first.elapsed()));
            let length = if lies { 1000 } else { 5 };
            let status = match self.plant.redirects {
                true => "302 Found\r\nLocation: /elsewhere",
                false => "200 OK",
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\nhello");
            let written = out.write_all(answer.as_bytes());
            self.state().late.push(first.elapsed().saturating_sub(due));
            if written.is_err() || lies {
                return;
            }
        }
    }

    /// Whether the connection of the request that came ends instead of an answer.
    fn closes(&self) -> bool {
        let every = self.plant.close_every;
        let mut state = self.state();
        state.requests += 1;
        every > 0 && state.requests.is_multiple_of(every)
    }

    /// When the request that came `now` is answered, and whether the answer lies about its length.
    fn answer_due(&self, now: Duration) -> (Duration, bool) {
        let plant = &self.plant;
        let mut state = self.state();
        state.answers += 1;
        let lies = plant.lie_every > 0 && state.answers.is_multiple_of(plant.lie_every);
        let slow = now < Duration::from_millis(plant.slow_until_ms);
        let takes = Duration::from_millis(if slow {
            plant.slow_ms
        } else {
            plant.latency_ms
        });
        let takes = takes + Duration::from_millis(plant.grows_ms).mul_f64(now.as_secs_f64());
        let begins = match state.free.iter_mut().min() {
            None => now,
            Some(free) => {
                let begins = now.max(*free);
                *free = begins + takes;
                begins
            }
        };
        let mut due = begins + takes;
        for (from, to) in &plant.freezes_ms {
            let (from, to) = (Duration::from_millis(*from), Duration::from_millis(*to));
            if due >= from && begins < to {
                due = due.max(to);
            }
        }
        (due, lies)
    }
}
