//! The commands that ask and order, with cfdot's names and flags.

use std::time::Duration;

use clap::{Args, Subcommand};

const LRP_SPEC: &str = "\
The spec is JSON, or @ and the name of a file that holds it:
  headroom cells create-desired-lrp @web.json

It needs process_guid, domain, rootfs, action and metric_tags, for instance
  {\"process_guid\":\"web\", \"domain\":\"trial\", \"instances\":2, \"memory_mb\":64, \"disk_mb\":64,
   \"rootfs\":\"preloaded:cflinuxfs4\", \"action\":{\"run\":{\"path\":\"/bin/true\",\"user\":\"vcap\"}},
   \"metric_tags\":{\"source_id\":{\"static\":\"web\"}}}";

const UPDATE_SPEC: &str = "\
The spec is JSON, or @ and the name of a file that holds it; what it does not name stays:
  headroom cells update-desired-lrp web '{\"instances\":4}'

It may name instances, routes, annotation, metric_tags, image_username and image_password.";

const TASK_SPEC: &str = "\
The spec is JSON, or @ and the name of a file that holds it:
  headroom cells create-task @task.json

It needs task_guid, domain, rootfs and action, for instance
  {\"task_guid\":\"once\", \"domain\":\"trial\", \"memory_mb\":64, \"disk_mb\":64,
   \"rootfs\":\"preloaded:cflinuxfs4\", \"action\":{\"run\":{\"path\":\"/bin/true\",\"user\":\"vcap\"}}}";

// No comment for documentation: it would become that of the command around it.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List fresh domains
    Domains(BbsCallArgs),
    /// Keep a domain fresh for a time, or for ever
    SetDomain(SetDomain),
    /// List the cells that are present
    Cells(BbsCallArgs),
    /// Show a cell's presence
    Cell(OfCell),
    /// Show the state of every cell, as it reports it
    CellStates(BbsCallArgs),
    /// Show the state of a cell, as it reports it
    CellState(OfCell),
    /// List desired LRPs
    DesiredLrps(InDomain),
    /// Show a desired LRP
    DesiredLrp(OfProcess),
    /// List the scheduling information of desired LRPs
    DesiredLrpSchedulingInfos(InDomain),
    /// Desire an LRP
    #[command(after_help = LRP_SPEC)]
    CreateDesiredLrp(Create),
    /// Change a desired LRP: instances, routes, annotation, metric tags, access to its image
    #[command(after_help = UPDATE_SPEC)]
    UpdateDesiredLrp(Update),
    /// Delete a desired LRP
    DeleteDesiredLrp(OfProcess),
    /// List instances
    ActualLrps(ActualLrps),
    /// Stop the instance of an index; it starts again if it is still desired
    RetireActualLrp(Retire),
    /// List instances by process and index
    #[command(hide = true)]
    ActualLrpGroups(OnCellInDomain),
    /// List the instances of a process by index
    #[command(hide = true)]
    ActualLrpGroupsForGuid(GroupsForGuid),
    /// List tasks
    Tasks(OnCellInDomain),
    /// Show a task
    Task(OfTask),
    /// Desire a task
    #[command(after_help = TASK_SPEC)]
    CreateTask(Create),
    /// Cancel a task
    CancelTask(OfTask),
    /// Delete a task that is completed
    DeleteTask(OfTask),
    /// Print events of desired LRPs and instances, as they happen
    LrpEvents(LrpEvents),
    /// Print events of tasks, as they happen
    TaskEvents(BbsFlags),
    /// List the locks of a Locket
    Locks(LocketFlags),
    /// List the presences of a Locket
    Presences(LocketFlags),
    /// Take or renew a lock
    ClaimLock(Claim),
    /// Take or renew a presence
    ClaimPresence(Claim),
    /// Give up a lock
    ReleaseLock(Release),
}

/// Certificates, for addresses with https.
// Every command has these: of a flag that is given twice the last counts, as with cfdot.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct TlsFlags {
    /// Authority that the server's certificate must come from (PEM) [else CA_CERT_FILE]
    #[arg(long = "caCertFile", visible_alias = "tls-ca", value_name = "FILE")]
    pub(crate) ca_cert_file: Option<String>,
    /// Own certificate (PEM) [else CLIENT_CERT_FILE]
    #[arg(
        long = "clientCertFile",
        visible_alias = "tls-cert",
        value_name = "FILE"
    )]
    pub(crate) client_cert_file: Option<String>,
    /// Private key of the certificate (PEM) [else CLIENT_KEY_FILE]
    #[arg(long = "clientKeyFile", visible_alias = "tls-key", value_name = "FILE")]
    pub(crate) client_key_file: Option<String>,
    /// Accept any certificate of the server: anyone in between can read and change everything
    /// [else SKIP_CERT_VERIFY]
    #[arg(
        long = "skipCertVerify",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = go_bool
    )]
    pub(crate) skip_cert_verify: Option<bool>,
}

/// Which BBS.
#[derive(Debug, Args)]
pub(crate) struct BbsFlags {
    /// Address of the BBS, for instance https://127.0.0.1:8889 [else BBS_URL]
    #[arg(long = "bbsURL", visible_alias = "bbs", value_name = "URL")]
    pub(crate) bbs_url: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

/// Which BBS, and how long to wait for it.
#[derive(Debug, Args)]
pub(crate) struct BbsCallArgs {
    #[command(flatten)]
    pub(crate) bbs: BbsFlags,
    /// Longest wait for an answer, in seconds; 0 or less: 60 [else CFDOT_TIMEOUT]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub(crate) timeout: Option<i64>,
}

/// Which Locket.
#[derive(Debug, Args)]
pub(crate) struct LocketFlags {
    /// HOST:PORT of the Locket; http://HOST:PORT of one without certificates
    /// [else LOCKET_API_LOCATION]
    #[arg(
        long = "locketAPILocation",
        visible_alias = "locket",
        value_name = "HOST:PORT"
    )]
    pub(crate) location: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SetDomain {
    /// The domain
    #[arg(value_name = "DOMAIN")]
    pub(crate) domain: String,
    /// How long it stays fresh, for instance 120s or 1h30m; 0: for ever
    #[arg(
        short,
        long,
        value_name = "TIME",
        default_value = "0",
        allow_hyphen_values = true,
        value_parser = ttl
    )]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OfCell {
    /// The cell
    #[arg(value_name = "CELL_ID")]
    pub(crate) cell_id: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InDomain {
    /// Only those of this domain
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) domain: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OfProcess {
    /// The process
    #[arg(value_name = "PROCESS_GUID")]
    pub(crate) process_guid: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What is desired
    #[arg(value_name = "SPEC|@FILE")]
    pub(crate) spec: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The process
    #[arg(value_name = "PROCESS_GUID")]
    pub(crate) process_guid: String,
    /// The changes; everything else stays
    #[arg(value_name = "SPEC|@FILE")]
    pub(crate) spec: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ActualLrps {
    /// Only those of this domain
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) domain: String,
    /// Only those on this cell
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) cell_id: String,
    /// Only those of this process
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) process_guid: String,
    /// Only those with this index
    #[arg(short, long, allow_hyphen_values = true)]
    pub(crate) index: Option<i32>,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Retire {
    /// The process
    #[arg(value_name = "PROCESS_GUID")]
    pub(crate) process_guid: String,
    /// The index of the instance
    // What begins with a dash is a flag, as to cfdot.
    #[arg(value_name = "INDEX", value_parser = index)]
    pub(crate) index: i32,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GroupsForGuid {
    /// The process
    #[arg(value_name = "PROCESS_GUID")]
    pub(crate) process_guid: String,
    /// Only the one with this index
    #[arg(short, long, allow_hyphen_values = true, value_parser = index)]
    pub(crate) index: Option<i32>,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OnCellInDomain {
    /// Only those of this domain
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) domain: String,
    /// Only those on this cell
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) cell_id: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OfTask {
    /// The task
    #[arg(value_name = "TASK_GUID")]
    pub(crate) task_guid: String,
    #[command(flatten)]
    pub(crate) asking: BbsCallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LrpEvents {
    /// Only events on this cell, and those of desired LRPs
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) cell_id: String,
    /// Not the deprecated events of instances by process and index
    #[arg(
        short = 'x',
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = go_bool
    )]
    pub(crate) exclude_actual_lrp_groups: Option<bool>,
    #[command(flatten)]
    pub(crate) bbs: BbsFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Claim {
    /// Its key
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) key: String,
    /// Its owner
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) owner: String,
    /// A value that others can read
    #[arg(
        short,
        long,
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(crate) value: String,
    /// How long it is held, in seconds
    #[arg(
        short,
        long,
        value_name = "SECONDS",
        default_value = "0",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(crate) ttl: i64,
    #[command(flatten)]
    pub(crate) locket: LocketFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Its key
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) key: String,
    /// Its owner
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub(crate) owner: String,
    #[command(flatten)]
    pub(crate) locket: LocketFlags,
}

/// A Boolean as Go's programs read it.
pub(super) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("expected one of 1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False".into()),
    }
}

fn ttl(text: &str) -> Result<Duration, String> {
    let below_zero = text.strip_prefix('-').map(units::parse_duration);
    if matches!(below_zero, Some(Ok(_))) {
        return Err("ttl is negative".into());
    }
    units::parse_duration(text).map_err(|error| format!("invalid duration \"{text}\": {error}"))
}

fn index(text: &str) -> Result<i32, String> {
    let index = text.parse().ok().filter(|index| *index >= 0);
    index.ok_or_else(|| "Index must be a non-negative integer".to_owned())
}
