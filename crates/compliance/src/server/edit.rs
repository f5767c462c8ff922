//! Single definitions that are changed: tried on a copy, durable before anybody is told, as
//! [`super::generator`] does with all of them.

use std::fmt;
use std::sync::Arc;

use telemetry::Fields;

use super::generator::{Generator, generate};
use super::ledger::Request;
use super::now;
use super::plan::DefineError;
use super::rest::ApiError;
use crate::acceptance::NodeStatus;
use crate::definitions::{Definitions, Edit};
use crate::model::node::{NodeState, ROOT};
use crate::policy::generation::{Change, Engine, Outcome, Problem};

/// Changes after which all definitions are written at once: so many are found again at most when
/// the server starts.
const EDITS: i64 = 64;

type Make = dyn FnOnce(&Definitions) -> Result<Edit, ApiError> + Send;

/// Makes a change of what there is, when its turn has come.
pub(crate) struct MakeEdit(Box<Make>);

impl MakeEdit {
    pub(super) fn new(
        make: impl FnOnce(&Definitions) -> Result<Edit, ApiError> + Send + 'static,
    ) -> Self {
        Self(Box::new(make))
    }
}

impl fmt::Debug for MakeEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeEdit")
    }
}

impl Generator {
    /// Carries out a change, or nothing of it.
    pub(super) fn edit(&mut self, make: MakeEdit) -> Result<(), ApiError> {
        let edit = {
            let definitions = Arc::clone(&self.view.read().definitions);
            (make.0)(&definitions)?
        };
        let mut engine = self.engine.clone();
        let applied = engine.apply(edit.change().into_iter().collect());
        applied.map_err(DefineError::from)?;
        let mut outcome = generate(&mut engine, self.threads);
        outcome.updates.retain(|update| &*update.node != ROOT);
        self.no_new_failure(&engine)?;
        let request = Request::Edit(Box::new(edit), None);
        self.runtime.block_on(self.commands.run(request))?;
        self.put(engine, outcome);
        Ok(())
    }

    /// What failed before, on some node, must not stand in the way of its repair.
    pub(super) fn no_new_failure(&self, engine: &Engine) -> Result<(), DefineError> {
        let before: Vec<&str> = self.engine.failures().map(|(id, _)| id).collect();
        let mut new = engine.failures().filter(|(id, _)| !before.contains(id));
        let Some((node, why)) = new.next() else {
            return Ok(());
        };
        Err(DefineError::Failures {
            count: engine.failures().count(),
            node: node.to_owned(),
            why: why.to_string(),
        })
    }

    /// Who reads a folder sees no circle that it makes with groups of the API. One that there was
    /// must not stand in the way of its repair.
    pub(super) fn no_new_circle(&self, engine: &Engine) -> Result<(), DefineError> {
        let before = self.engine.problems();
        let mut all = engine.problems().iter();
        let new = all.find(|one| matches!(one, Problem::Circle(_)) && !before.contains(one));
        match new {
            Some(circle) => Err(DefineError::Circle(circle.clone())),
            None => Ok(()),
        }
    }

    /// Puts an engine that was tried in the place of the one there is, and keeps what it made.
    pub(super) fn put(&mut self, engine: Engine, outcome: Outcome) {
        self.engine = engine;
        self.count(&outcome);
        self.save(outcome.updates);
        self.groups();
        self.expirations();
    }

    /// After a change, writes all definitions once more, as a whole, if it is time. If it fails,
    /// changes remain.
    pub(super) fn gather(&self) {
        let (definitions, base) = {
            let state = self.view.read();
            (Arc::clone(&state.definitions), state.version)
        };
        if base % EDITS != 0 {
            return;
        }
        let request = Request::Definitions(definitions, base);
        if let Err(error) = self.runtime.block_on(self.commands.run(request)) {
            let fields = Fields::new().and("version", base);
            self.logger
                .error("definitions-not-gathered", &error, fields);
        }
    }

    /// What is set for a node, as it is when its turn has come.
    pub(super) fn administered(&self, id: &str) -> Option<Change> {
        let state = self.view.read();
        let record = state.nodes.get(id)?;
        let node = (record.known.standing == NodeStatus::Accepted).then_some(&record.node)?;
        let enabled = node.state != NodeState::Ignored;
        // With the state: a node that goes now is not made anew.
        self.compliance.lock().fleet.set_node(id, enabled, now());
        Some(Change::SetNode(Arc::clone(node)))
    }
}
