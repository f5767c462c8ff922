//! Why a step failed.

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rep) struct Failure {
    text: String,
    /// It is left out where several failures are told together.
    hidden: bool,
    /// It was worded for whoever owns the container.
    worded: bool,
}

impl Failure {
    /// One that was worded for whoever owns the container.
    pub(in crate::rep) fn worded(text: impl Into<String>) -> Self {
        Self {
            worded: true,
            ..Self::plain(text)
        }
    }

    /// One that the system, or a peer, worded.
    pub(in crate::rep) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hidden: false,
            worded: false,
        }
    }

    /// The step was asked to stop.
    pub(in crate::rep) fn cancelled() -> Self {
        Self::hidden("cancelled")
    }

    /// The step was asked to stop, did not in time, and was killed.
    pub(in crate::rep) fn killed() -> Self {
        Self::hidden("exceeded graceful shutdown interval")
    }

    fn hidden(text: &str) -> Self {
        Self {
            hidden: true,
            ..Self::plain(text)
        }
    }

    /// Several steps failed; in the order in which they did.
    pub(in crate::rep) fn joined(failures: Vec<Self>) -> Self {
        let shown = failures.iter().filter(|failure| !failure.hidden);
        let texts = shown.map(|failure| failure.text.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        Self::plain(texts.join("; "))
    }

    /// What is told.
    pub(in crate::rep) fn text(&self) -> &str {
        &self.text
    }

    /// What is told, where it was worded for that.
    pub(super) fn wording(&self) -> Option<&str> {
        self.worded.then_some(self.text.as_str())
    }
}
