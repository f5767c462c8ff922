//! From a load of a plan to what a generator is told.

use std::collections::BTreeMap;

use lab_load::request::{Body, Composer, Journey, Mix, RequestError, Step, Table};
use lab_load::{Login, Share, Target, TlsSettings, Workload};
use units::UnitError;

use crate::names::stand_in;
use crate::plan::{Call, Load, Reference, Request, RequestBody, Template};

/// Files that a load names, as they were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadFiles {
    /// Lines of CSV files, by the name that requests use.
    pub tables: BTreeMap<String, Table>,
    /// Bodies, by path.
    pub bodies: BTreeMap<String, Vec<u8>>,
    /// Certificates and keys.
    pub tls: TlsSettings,
    /// The password of a database; empty: none.
    pub password: String,
}

/// What is wrong with what a load asks.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// Where requests go cannot be read.
    #[error("{}{}", .0, .0.hint())]
    Target(#[from] UnitError),
    /// A request cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Load {
    /// Checks that requests can be made with these files, before the addresses of a run
    /// are known.
    ///
    /// # Errors
    /// What cannot be understood or made.
    pub fn check(&self, files: &LoadFiles) -> Result<(), LoadError> {
        let workload = self.workload(0, files.clone(), &stand_in)?;
        Composer::new(&workload.mix, &workload.target, workload.seed)?;
        Ok(())
    }

    /// What names the place that its connections go to.
    pub fn place(&self) -> &Template {
        self.connect_to.as_ref().unwrap_or(&self.target)
    }

    /// Paths of the files that hold bodies.
    pub fn body_files(&self) -> impl Iterator<Item = &str> {
        self.requests().filter_map(|request| match &request.body {
            RequestBody::File(path) => Some(path.as_str()),
            _ => None,
        })
    }

    /// Every request, of every journey.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.journeys.iter().flat_map(|journey| &journey.requests)
    }

    /// The target as people write it, with references filled in by `resolve`.
    pub fn target_text(&self, resolve: &dyn Fn(&Reference) -> String) -> String {
        let base = self.target.render(resolve);
        match self.requests().collect::<Vec<_>>().as_slice() {
            [only] => base + &only.path.render(resolve),
            _ => base,
        }
    }

    /// What is asked, with references filled in by `resolve`. A body that was not
    /// read is empty.
    pub fn mix(&self, files: &LoadFiles, resolve: &dyn Fn(&Reference) -> String) -> Mix {
        let journeys = self.journeys.iter().map(|journey| Journey {
            name: journey.name.clone(),
            weight: journey.weight,
            steps: journey
                .requests
                .iter()
                .map(|request| request.step(files, resolve))
                .collect(),
        });
        Mix {
            journeys: journeys.collect(),
            tables: files.tables.clone(),
        }
    }

    /// What a generator of this machine is told; `seed` is that of the run.
    ///
    /// # Errors
    /// When the target, or the place that stands for it, is none once references are filled in.
    pub fn workload(
        &self,
        seed: u64,
        files: LoadFiles,
        resolve: &dyn Fn(&Reference) -> String,
    ) -> Result<Workload, UnitError> {
        let (mut target, _) = Target::parse(&self.target.render(resolve))?;
        if let Some(place) = &self.connect_to {
            (target.host, target.port) = Target::place(&place.render(resolve), target.port)?;
        }
        Ok(Workload {
            target: Target {
                protocol: self.protocol,
                login: Login {
                    password: files.password.clone(),
                    ..target.login
                },
                ..target
            },
            mix: self.mix(&files, resolve),
            connections: self.connections.clone(),
            timeout: self.timeout,
            pace: self.pace,
            threads: self.threads,
            share: Share {
                first: 0,
                threads: self.threads,
            },
            cpus: self.cpus.clone(),
            seed: seed_of(seed, &self.name),
            tls: TlsSettings {
                insecure: self.tls.insecure,
                ..files.tls
            },
            guard: self.guard.clone(),
        })
    }
}

impl Request {
    /// The request, with references filled in by `resolve`. A body that was not read is
    /// empty.
    fn step(&self, files: &LoadFiles, resolve: &dyn Fn(&Reference) -> String) -> Step {
        let text = |template: &Template| template.request(resolve);
        let headers = self.headers.iter();
        Step {
            name: self.name.clone(),
            method: self.method.clone(),
            path: text(&self.path),
            headers: headers
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            body: match &self.body {
                RequestBody::Empty => Body::Empty,
                RequestBody::Text(template) => Body::Template(text(template)),
                RequestBody::File(path) => {
                    Body::Bytes(files.bodies.get(path).cloned().unwrap_or_default())
                }
            },
            think: self.think,
            take: self.take.clone(),
            assertions: self.assertions.clone(),
            answer: self.answer.clone(),
        }
    }
}

impl Call {
    /// Checks that the request can be made, before the addresses of a run are known.
    ///
    /// # Errors
    /// What cannot be understood or made.
    pub fn check(&self) -> Result<(), LoadError> {
        self.composer(0, &LoadFiles::default(), &stand_in).map(drop)
    }

    /// What writes the request and judges the answer, with its body among those of `files` if
    /// it is one, and references filled in by `resolve`; `seed` is that of the run.
    ///
    /// # Errors
    /// What cannot be understood or made once references are filled in.
    pub fn composer(
        &self,
        seed: u64,
        files: &LoadFiles,
        resolve: &dyn Fn(&Reference) -> String,
    ) -> Result<Composer, LoadError> {
        let in_url = |reference: &Reference| match reference {
            Reference::Kept(_) => in_url(&resolve(reference)),
            _ => resolve(reference),
        };
        // A kept value behind the host begins the path.
        let (target, begin) = Target::parse(&self.target.render(in_url))?;
        let rest = self.request.path.request(in_url);
        let step = Step {
            path: match begin == "/" && rest.starts_with('/') {
                true => rest,
                false => begin + &rest,
            },
            ..self.request.step(files, resolve)
        };
        let seed = seed_of(seed, &self.request.name);
        Ok(Composer::new(&Mix::of(step), &target, seed)?)
    }
}

/// A text as it can stand in a URL: what cannot is percent-encoded (RFC 3986, section 2).
fn in_url(text: &str) -> String {
    let may_stand =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let mut encoded = String::new();
    for byte in text.bytes() {
        match may_stand(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A seed of its own for each load, so that two of them do not send in step (FNV-1a of
/// the run's seed and the name).
fn seed_of(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    stats::fnv1a(0, bytes)
}
