//! From a load of a plan to what a generator is told.

use std::collections::BTreeMap;

use lab_load::request::{Body, Composer, Journey, Mix, RequestError, Step, Table};
use lab_load::{Share, Target, TlsSettings, Workload};
use units::UnitError;

use crate::names::stand_in;
use crate::plan::{Load, Reference, Request, RequestBody, Template};

/// Files that a load names, as they were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadFiles {
    /// Lines of CSV files, by the name that requests use.
    pub tables: BTreeMap<String, Table>,
    /// Bodies, by path.
    pub bodies: BTreeMap<String, Vec<u8>>,
    /// Certificates and keys.
    pub tls: TlsSettings,
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
        let stands = |reference: &Reference| stand_in(reference).to_owned();
        let workload = self.workload(0, files.clone(), &stands)?;
        Composer::new(&workload.mix, &workload.target, workload.seed)?;
        Ok(())
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
        let text = |template: &Template| template.request(resolve);
        let step = |request: &Request| Step {
            name: request.name.clone(),
            method: request.method.clone(),
            path: text(&request.path),
            headers: request
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            body: match &request.body {
                RequestBody::Empty => Body::Empty,
                RequestBody::Text(template) => Body::Template(text(template)),
                RequestBody::File(path) => {
                    Body::Bytes(files.bodies.get(path).cloned().unwrap_or_default())
                }
            },
            think: request.think,
            take: request.take.clone(),
            assertions: request.assertions.clone(),
            answer: request.answer.clone(),
        };
        let journeys = self.journeys.iter().map(|journey| Journey {
            name: journey.name.clone(),
            weight: journey.weight,
            steps: journey.requests.iter().map(step).collect(),
        });
        Mix {
            journeys: journeys.collect(),
            tables: files.tables.clone(),
        }
    }

    /// What a generator of this machine is told; `seed` is that of the run.
    ///
    /// # Errors
    /// When the target is none once references are filled in.
    pub fn workload(
        &self,
        seed: u64,
        files: LoadFiles,
        resolve: &dyn Fn(&Reference) -> String,
    ) -> Result<Workload, UnitError> {
        let (target, _) = Target::parse(&self.target.render(resolve))?;
        Ok(Workload {
            target: Target {
                protocol: self.protocol,
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

/// A seed of its own for each load, so that two of them do not send in step (FNV-1a of
/// the run's seed and the name).
fn seed_of(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    stats::fnv1a(0, bytes)
}
