//! How a graph was started: what is worth knowing beside its results.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use document::Source;
use graph::background::Seen;
use graph::noise::Facts;
use graph::placement::IsolationLevel;
use graph::probe;
use graph::profile::Profile;
use graph::topology::Topology;
use graph::work::{Calibration, SharedResources};
use serde_json::{Value, json};
use traces::analysis::Floors;
use traces::ids::Run;

/// What does not change while a graph runs.
#[derive(Debug)]
pub(super) struct Deployment {
    /// `process`, `processes`, `namespaces` or `service`.
    pub(super) mode: &'static str,
    /// What tells the trace ids of this start from those of others.
    pub(super) run: Run,
    /// Where the profile came from at first.
    pub(super) file: String,
    /// The machine, as of the start.
    pub(super) facts: Facts,
    /// What could not be done as the topology says, each a sentence.
    pub(super) warnings: Vec<String>,
    /// What hops take here, once that is known.
    floors: Arc<OnceLock<Floors>>,
}

impl Deployment {
    pub(super) fn new(
        mode: &'static str,
        source: &Source,
        run: Run,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            mode,
            run,
            file: source.name.clone(),
            facts: Facts::read(Path::new("/")),
            warnings,
            floors: Arc::default(),
        }
    }

    /// Measures what hops take, beside what starts meanwhile. Without it, hops are held to
    /// what they take in the run itself.
    pub(super) fn with_floors(self, calibration: Calibration) -> Self {
        let floors = Arc::clone(&self.floors);
        let measured = move || {
            if let Ok(found) = probe::measure(calibration, &std::env::temp_dir()) {
                // It is set once.
                let _ = floors.set(found);
            }
        };
        // One that cannot start measures nothing.
        let _ = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(measured);
        self
    }

    /// What hops, handling and handing over take; `None`: not known, or not yet.
    pub(super) fn floors(&self) -> Option<&Floors> {
        self.floors.get()
    }

    /// A profile that came without a file: what it names stands where the file's do.
    pub(super) fn source(&self, text: &str) -> Source {
        Source {
            name: self.file.clone(),
            text: text.to_owned(),
        }
    }

    pub(super) fn describe(
        &self,
        topology: &Topology,
        resources: &SharedResources,
        profile: &Profile,
        background: &[Seen],
    ) -> Value {
        let background = background
            .iter()
            .map(|seen| json!({ "name": seen.name, "active": seen.active, "cpu_ns": seen.cpu }));
        json!({
            "mode": self.mode,
            "run": self.run.0,
            "rung": IsolationLevel::of(topology, self.facts.isolated.as_deref()),
            "machine": self.facts,
            "calibration": resources.calibration(),
            "floors": self.floors(),
            "disk_is_memory": resources.disk_is_memory(),
            "background": background.collect::<Vec<_>>(),
            "profile": {
                "file": self.file,
                "refused": profile.refusal(),
                "refusals": profile.refusals(),
            },
            "warnings": self.warnings,
        })
    }
}
