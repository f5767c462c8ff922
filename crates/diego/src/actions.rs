//! An action of one kind as the message that holds any.

use crate::models::{
    Action, CodependentAction, DownloadAction, EmitProgressAction, ParallelAction, RunAction,
    SerialAction, TimeoutAction, TryAction, UploadAction,
};

macro_rules! actions {
    ($($kind:ident: $field:ident;)*) => {
        $(impl From<$kind> for Action {
            fn from(action: $kind) -> Self {
                Self {
                    $field: Some(action.into()),
                    ..Self::default()
                }
            }
        })*
    };
}

actions! {
    DownloadAction: download_action;
    UploadAction: upload_action;
    RunAction: run_action;
    TimeoutAction: timeout_action;
    EmitProgressAction: emit_progress_action;
    TryAction: try_action;
    ParallelAction: parallel_action;
    SerialAction: serial_action;
    CodependentAction: codependent_action;
}
