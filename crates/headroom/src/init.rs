//! `headroom init`: a first experiment about a system that was never measured.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use lab_experiment::draft::{Draft, DraftTarget, PortChosen};
use lab_experiment::{Source, check};
use lab_load::Summary;
use lab_load::summary::ErrorCount;
use lab_runner::Ports;
use lab_store::Outcome;
use measure::{Clock, listening_ports};
use processes::{Process, Program, Reaper, RunTag};
use tempfile::NamedTempFile;
use units::show_seconds;

use crate::catalogue::catalogue;
use crate::cli::InitArgs;
use crate::load::{self, LoadArgs};
use crate::output::{eprint, print};

/// Requests a second of the measurement: enough for a p90 in five seconds, and nothing
/// that a system would feel.
const RATE: u32 = 20;
/// Time between two looks at a program that starts.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program that is asked to end may take.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer may take that shows if HTTP is spoken at all.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of such an answer that are read.
const ANSWER_BYTES: u64 = 1 << 20;
/// Lines of a program's output that are shown when it does not come up.
const LINES: usize = 10;

/// Measures, and writes the file.
pub(crate) fn init(args: &InitArgs) -> Result<Outcome> {
    if args.out.exists() {
        bail!(
            "{} is there already; --out FILE takes another name",
            args.out.display()
        );
    }
    let folder = args.out.parent().filter(|it| !it.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        bail!("write {}: there is no such folder", args.out.display());
    }
    let (target, summary) = match &args.target[..] {
        [url] if is_url(url) => (DraftTarget::Url(url.clone()), measured(url)?),
        [url, ..] if is_url(url) => bail!(
            "{url} is no program, so nothing stands behind it; options stand before it: headroom init \
             --out FILE {url}"
        ),
        [address] if is_address(address) && !Path::new(address).exists() => bail!(
            "{address} is no program; of a service that runs give the address as http://{address}{}",
            if address.contains('/') { "" } else { "/" }
        ),
        words => of_command(words, args)?,
    };
    let latency = &summary.latency.intended;
    // Where this machine was late itself, what the target took at most.
    let at_most = latency.bounds.get("p90").map(|[_, most]| *most);
    let p90 = latency
        .p90
        .or(at_most)
        .or(latency.max)
        .context("tell how long answers take: too few came; try again")?;
    let draft = Draft {
        asked: args.target.join(" "),
        target,
        rate: RATE,
        p90: Duration::try_from_secs_f64(p90).unwrap_or(Duration::MAX),
    };
    let source = Source {
        name: args.out.display().to_string(),
        text: draft.to_toml(),
    };
    check(&source, &[], &catalogue()).map_err(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(|one| one.render(false)).collect();
        anyhow!("write an experiment about this:\n{}", mistakes.join("\n"))
    })?;
    write_new(&args.out, &source.text)?;
    let file = args.out.display();
    print(&format!(
        "{} requests at {RATE}/s: p50 {}, p90 {}\nwrote {file}; next:\n\n  headroom run {file}\n",
        summary.requests.answered,
        show_seconds(latency.p50.unwrap_or(p90)),
        show_seconds(p90),
    ))?;
    Ok(Outcome::Pass)
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    let writing = || format!("write {}", path.display());
    let mut file = std::fs::File::create_new(path).with_context(writing)?;
    file.write_all(text.as_bytes()).with_context(writing)
}

/// Puts a little load on something that answers.
fn measured(url: &str) -> Result<Summary> {
    /// A command line of its own, so that all defaults are those of `headroom load`.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }
    let rate = RATE.to_string();
    let words = ["load", url, "--rate", &rate, "--duration", "5s"];
    let line = Line::try_parse_from(words).context("put load on it")?;
    eprint(format_args!("measuring {url} for 5 s at {RATE}/s"));
    let summary = load::measure(&line.load)?;
    let counts = &summary.requests;
    if counts.answered == 0 || counts.refused + counts.errors > 0 {
        bail!(
            "{url} {}",
            not_working(counts.sent, &summary.statuses, &summary.errors)
        );
    }
    Ok(summary)
}

/// What came of requests of which some did not work, and what to do about it.
fn not_working(sent: u64, statuses: &BTreeMap<u16, u64>, errors: &[ErrorCount]) -> String {
    let answered = statuses
        .iter()
        .map(|(status, count)| format!("{count} with {status}"));
    let failed = errors.iter().map(|error| {
        // A time-out has no other cause.
        let why = match error.phase.name() == error.cause {
            true => error.cause.clone(),
            false => format!("{}: {}", error.phase.name(), error.cause),
        };
        format!("{} not at all ({why})", error.count)
    });
    let outcomes: Vec<String> = answered.chain(failed).collect();
    let help = match errors.is_empty() {
        true => "name a path that answers with 200, for a program with --path /PATH",
        false => "see that it takes 20 requests a second",
    };
    format!(
        "answered {sent} requests so: {}; a first experiment begins with something that works: {help}",
        outcomes.join(", ")
    )
}

/// Whether a word is an address with its scheme, and no command that has one among its arguments.
fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether a word is `HOST:PORT`, with a path or without, as nobody calls a program.
fn is_address(word: &str) -> bool {
    let authority = word.split('/').next().unwrap_or_default();
    let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    authority
        .rsplit_once(':')
        .is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok())
}

/// Starts a program, finds where it listens, and puts a little load on it.
fn of_command(words: &[String], args: &InitArgs) -> Result<(DraftTarget, Summary)> {
    // Whoever gives one word with spaces means a command line.
    let words: Vec<String> = match words {
        [line] => line.split_whitespace().map(str::to_owned).collect(),
        words => words.to_vec(),
    };
    let mut ports = Ports::new();
    let free = ports.allot()?;
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("{port}", &free.to_string()))
        .collect();
    ports.release(free);
    let mut program = Started::start(&words, free)?;
    let port = program.port(&args.path, args.within)?;
    let summary = measured(&format!("http://127.0.0.1:{port}{}", args.path))?;
    drop(program);
    let chosen = PortChosen::when(&words, free, port);
    let words = from_folder_of(&args.out, words)?;
    let target = DraftTarget::Command {
        words,
        port,
        chosen,
        path: args.path.clone(),
    };
    Ok((target, summary))
}

/// The same words for a file whose folder is another: paths in it start from there.
fn from_folder_of(out: &Path, words: Vec<String>) -> Result<Vec<String>> {
    if out.parent().is_none_or(|folder| folder == Path::new("")) {
        return Ok(words);
    }
    // A program without a slash is found in PATH.
    let there = |(at, word): (usize, String)| match Path::new(&word).exists() {
        true if at > 0 || word.contains('/') => {
            let path = std::path::absolute(&word).context("find the current folder")?;
            Ok(path.display().to_string())
        }
        _ => Ok(word),
    };
    words.into_iter().enumerate().map(there).collect()
}

/// A program that runs until this is dropped, with all that it started.
struct Started {
    process: Process,
    tag: RunTag,
    /// Ends all when this process is killed.
    reaper: Reaper,
    line: String,
    /// What it says, for the case that it does not come up.
    output: NamedTempFile,
}

impl Started {
    fn start(words: &[String], port: u16) -> Result<Self> {
        let (program, arguments) = words.split_first().context("start what? Give a command")?;
        let line = words.join(" ");
        eprint(format_args!("starting {line}"));
        let output = NamedTempFile::new().context("make a file for the program's output")?;
        let file = || output.reopen().context("open the program's output");
        let own = std::env::current_exe().context("find the path of this program")?;
        let reaper = Reaper::start(&[own.into(), "reaper".into()])?;
        let tag = RunTag::new("init", Clock::start().origin_unix_ns());
        reaper.tag(&tag)?;
        let mut command = Program::new(program).args(arguments);
        let variables = [("PORT".to_owned(), port.to_string()), tag.variable()];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        command.env.extend(variables);
        command.standard = [None, Some(file()?.into()), Some(file()?.into())];
        let process = command.spawn();
        Ok(Self {
            process: process.with_context(|| format!("start {program}"))?,
            tag,
            reaper,
            line,
            output,
        })
    }

    /// The last lines that it wrote.
    fn last_lines(&self) -> String {
        let bytes = std::fs::read(self.output.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> = text.lines().rev().take(LINES).collect();
        lines.reverse();
        lines.iter().map(|line| format!("\n  {line}")).collect()
    }

    /// The port on which it answers HTTP, once it does.
    fn port(&mut self, path: &str, within: Duration) -> Result<u16> {
        let until = Instant::now() + within;
        let mut listening = listening_ports(self.process.leader().id());
        while Instant::now() < until {
            if let Some(ended) = self.process.ended().context("look after the program")? {
                bail!(
                    "{} ended before it listened: {ended}{}",
                    self.line,
                    self.last_lines()
                );
            }
            listening = listening_ports(self.process.leader().id());
            if let Some(port) = listening.iter().find(|port| speaks_http(**port, path)) {
                return Ok(*port);
            }
            std::thread::sleep(LOOK);
        }
        let ports: Vec<String> = listening.iter().map(ToString::to_string).collect();
        match ports.is_empty() {
            true => bail!(
                "{} listens on no TCP port after {} s; --within waits longer{}",
                self.line,
                within.as_secs(),
                self.last_lines()
            ),
            false => bail!(
                "{} listens on {}, and does not answer HTTP there; docs/load.md has loads over \
                 TCP, gRPC and more",
                self.line,
                ports.join(", ")
            ),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // What the kernel does not end now, nobody can.
        let _ = self.process.stop(END_WITHIN);
        self.tag.sweep();
        let _ = self.reaper.done();
    }
}

/// Whether what listens on a port answers a request as HTTP has it.
fn speaks_http(port: u16, path: &str) -> bool {
    let asked = || -> std::io::Result<Vec<u8>> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        // To its end, or the program would log that we hung up.
        stream.take(ANSWER_BYTES).read_to_end(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.starts_with(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_a_program() {
        for address in ["127.0.0.1:8080", "localhost:80/health", "[::1]:9000"] {
            assert!(is_address(address), "{address}");
        }
        for program in [
            "./serve",
            "./a:80",
            "nginx",
            "serve --on 127.0.0.1:80",
            ":80",
            "a:b",
            "a:99999",
        ] {
            assert!(!is_address(program), "{program}");
        }
    }

    #[test]
    fn a_url_is_told_from_a_command_that_has_one() {
        assert!(is_url("http://127.0.0.1:8080/") && is_url("h2c://a/?b=c://d"));
        for command in ["./serve", "serve --to http://a/", "127.0.0.1:80"] {
            assert!(!is_url(command), "{command}");
        }
    }

    #[test]
    fn why_requests_did_not_work_is_named() {
        let reset = ErrorCount {
            phase: lab_load::recording::Phase::Read,
            cause: "the connection was reset".into(),
            count: 60,
        };
        let told = not_working(100, &[(200, 40)].into(), &[reset]);
        assert!(
            told.starts_with("answered 100 requests so: 40 with 200, 60 not at all ("),
            "{told}"
        );
        assert!(told.contains("the connection was reset"), "{told}");
        let told = not_working(100, &[(200, 40), (429, 60)].into(), &[]);
        assert!(
            told.contains("so: 40 with 200, 60 with 429;") && told.contains("--path"),
            "{told}"
        );
    }
}
