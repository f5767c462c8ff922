//! Files that loads name: tables, bodies, recorded times, certificates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab_experiment::plan::{Load, LoadModel, LoadTls, Plan, RequestBody, Schedule, Template};
use lab_experiment::{LoadError, LoadFiles};
use lab_load::arrivals::{Arrivals, trace};
use lab_load::request::Table;
use lab_load::{Protocol, TlsSettings};
use rustls::ClientConfig;
use wire::tls::{TlsClient, TlsOptions};

use crate::processes::Addresses;

/// Largest file of a load, in bytes; a byte more is read, to see that there is more.
const LARGEST: u64 = 64 << 20;
/// Largest PEM file.
const LARGEST_PEM: u64 = 1 << 20;
/// Largest file with a password.
const LARGEST_PASSWORD: u64 = 1 << 20;

/// Files of all loads of a plan, read before anything starts.
#[derive(Debug, Default)]
pub(crate) struct Files {
    loads: BTreeMap<String, LoadFiles>,
    /// Bodies of requests that steps make.
    calls: LoadFiles,
    traces: BTreeMap<String, Arrivals>,
    /// The folder that relative paths start from.
    base: PathBuf,
}

/// A file of a load or a step cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{whose}: {cause}")]
pub struct FileError {
    /// Which load, or which step.
    whose: String,
    /// What was found, and what to do.
    cause: String,
}

impl Files {
    /// Reads every file whose name does not depend on the run, and checks that the
    /// requests can be made of them.
    pub(crate) fn read(plan: &Plan, base: &Path) -> Result<Self, FileError> {
        let mut files = Self {
            base: base.to_owned(),
            ..Self::default()
        };
        for load in &plan.loads {
            let failed = |cause: String| FileError {
                whose: format!("load {}", load.name),
                cause,
            };
            let own = read(load, base).map_err(failed)?;
            load.check(&own)
                .map_err(|error: LoadError| failed(error.to_string()))?;
            files.loads.insert(load.name.clone(), own);
            if let LoadModel::Open {
                arrivals: Some(Schedule::Trace(path)),
                ..
            } = &load.model
            {
                let text = text(base, path, LARGEST).map_err(failed)?;
                let arrivals =
                    trace::parse(&text).map_err(|error| failed(format!("{path}: {error}")))?;
                files.traces.insert(load.name.clone(), arrivals);
            }
        }
        for step in &plan.steps {
            for call in step.requests() {
                if let RequestBody::File(path) = &call.request.body {
                    let body = bytes(base, path, LARGEST).map_err(|cause| FileError {
                        whose: format!("step {:?}", step.name),
                        cause,
                    })?;
                    files.calls.bodies.insert(path.clone(), body);
                }
            }
        }
        Ok(files)
    }

    /// Bodies of requests that steps make.
    pub(crate) fn of_calls(&self) -> &LoadFiles {
        &self.calls
    }

    /// Recorded times of a load.
    pub(crate) fn trace(&self, load: &str) -> Option<&Arrivals> {
        self.traces.get(load)
    }

    /// Files of a load, with the certificates that may have come with the run.
    pub(crate) fn of(&self, load: &Load, addresses: &Addresses) -> Result<LoadFiles, String> {
        let mut files = self.loads.get(&load.name).cloned().unwrap_or_default();
        files.tls = tls(&self.base, &load.tls, |path| addresses.render(path))?;
        Ok(files)
    }
}

fn read(load: &Load, base: &Path) -> Result<LoadFiles, String> {
    let mut files = LoadFiles::default();
    for (name, path) in &load.tables {
        let table = Table::parse(&text(base, path, LARGEST)?);
        let table = table.map_err(|error| format!("{path}: {error}"))?;
        files.tables.insert(name.clone(), table);
    }
    for path in load.body_files() {
        files
            .bodies
            .insert(path.to_owned(), bytes(base, path, LARGEST)?);
    }
    files.password = password(base, load.password_file.as_deref(), load.protocol)?;
    Ok(files)
}

/// What PEM files say, whose names `render` fills in.
fn tls(
    base: &Path,
    tls: &LoadTls,
    render: impl Fn(&Template) -> String,
) -> Result<TlsSettings, String> {
    let pem = |template: &Option<Template>| match template {
        Some(path) => text(base, &render(path), LARGEST_PEM),
        None => Ok(String::new()),
    };
    Ok(TlsSettings {
        authorities: pem(&tls.authority)?,
        certificate: pem(&tls.certificate)?,
        key: pem(&tls.key)?,
        insecure: tls.insecure,
    })
}

/// TLS of a client for single questions over HTTP/1.1.
///
/// # Errors
/// When a file cannot be read, or does not hold what it should.
pub(crate) fn client_tls(
    base: &Path,
    files: &LoadTls,
    render: impl Fn(&Template) -> String,
) -> Result<Arc<ClientConfig>, String> {
    let settings = tls(base, files, render)?;
    let options = TlsOptions {
        authorities: &settings.authorities,
        public_authorities: false,
        certificate: &settings.certificate,
        key: &settings.key,
        insecure: settings.insecure,
        protocols: &["http/1.1"],
    };
    // The client names the server of each connection itself.
    let client = TlsClient::new("localhost", &options);
    client
        .map(|client| client.config())
        .map_err(|error| error.to_string())
}

/// The password of a database: what a file says, or else the variable of its protocol.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn password(
    base: &Path,
    file: Option<&str>,
    protocol: Protocol,
) -> Result<String, String> {
    let Some(path) = file else {
        let variable = protocol.password_variable();
        return Ok(variable.map_or_else(String::new, |variable| {
            std::env::var(variable).unwrap_or_default()
        }));
    };
    let password = text(base, path, LARGEST_PASSWORD)?;
    Ok(password.trim_end_matches(['\r', '\n']).to_owned())
}

fn bytes(base: &Path, path: &str, largest: u64) -> Result<Vec<u8>, String> {
    // What is absolute stays so.
    let whole = base.join(path);
    let failed = |error: std::io::Error| format!("read {}: {error}", whole.display());
    let mut bytes = Vec::new();
    File::open(&whole)
        .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > largest {
        let largest = units::show_bytes(largest as f64);
        return Err(format!("read {path}: it has more than {largest}"));
    }
    Ok(bytes)
}

fn text(base: &Path, path: &str, largest: u64) -> Result<String, String> {
    String::from_utf8(bytes(base, path, largest)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("read {path}: it is not UTF-8 text, from byte {at} on")
    })
}
