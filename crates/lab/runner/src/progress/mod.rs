//! What a person sees while a run goes on, on standard error.

mod render;
mod show;
mod status;

pub(crate) use show::Shown;
pub(crate) use status::{LifecycleView, LoadView, OngoingActivity, ProbeView, Status};
