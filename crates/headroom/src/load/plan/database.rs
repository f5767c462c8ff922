//! What a load of a database needs besides: its command or statement, and a password that is never shown.

use anyhow::{Result, bail};
use lab_load::request::Body;
use lab_load::{Protocol, Target};

use super::super::args::LoadArgs;
use super::read_text;

/// Longest file with a password.
const PASSWORD_BYTES: u64 = 1 << 20;

/// The password of a database: from the file, if one is named, else from the environment.
pub(super) fn password(args: &LoadArgs, target: &Target) -> Result<String> {
    let variable = target.protocol.password_variable();
    match (&args.password_file, variable) {
        (Some(_), None) => {
            bail!("--password-file is for databases: redis://, rediss:// and postgres://")
        }
        (Some(file), Some(_)) => {
            let text = read_text(file, PASSWORD_BYTES, "the password")?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        (None, Some(variable)) => Ok(std::env::var(variable).unwrap_or_default()),
        (None, None) => Ok(String::new()),
    }
}

/// The command that is asked of Redis, or the statement of PostgreSQL.
pub(super) fn statement(args: &LoadArgs, protocol: Protocol) -> Result<Body> {
    let others = [
        ("-d", args.data.is_some()),
        ("-D", args.data_file.is_some()),
        ("-H", !args.headers.is_empty()),
        ("-T", args.content_type.is_some()),
        ("-m", args.method.is_some()),
        ("--answer", args.answer.is_some()),
    ];
    if let Some((flag, _)) = others.iter().find(|(_, given)| *given) {
        bail!(
            "{flag} is not for databases, whose requests are a command behind the URL or --sql TEXT"
        );
    }
    match (args.command.as_ref().or(args.sql.as_ref()), protocol) {
        (Some(text), _) => Ok(Body::Template(text.clone())),
        (None, Protocol::Postgres) => {
            bail!("a request of PostgreSQL is a statement; give it with --sql 'SELECT 1'")
        }
        (None, _) => bail!(
            "a request of Redis is a command; write it behind the URL, such as \
             'GET key:{{uniform 0 1000}}'"
        ),
    }
}

/// Says what is wrong with flags that belong to other protocols than the target's.
pub(super) fn check(args: &LoadArgs, target: &Target) -> Result<()> {
    let redis = target.protocol == Protocol::Redis;
    if args.command.is_some() && !redis {
        bail!("a command behind the URL is for redis:// and rediss:// only");
    }
    if args.sql.is_some() && target.protocol != Protocol::Postgres {
        bail!("--sql is for postgres:// only");
    }
    if (args.command.is_some() || args.sql.is_some()) && args.requests_file.is_some() {
        bail!(
            "the file of --requests-file has the requests; leave the one of the command line out"
        );
    }
    match (redis, args.pipeline, args.streams) {
        (false, Some(_), _) => bail!("--pipeline is for redis:// and rediss:// only"),
        (true, _, Some(streams)) => {
            bail!("--streams is for HTTP/2 and gRPC; did you mean --pipeline {streams}?")
        }
        _ => Ok(()),
    }
}
