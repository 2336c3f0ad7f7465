//! `laneway job …` and `laneway why`.

use clap::{Args as ClapArgs, Subcommand};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway job`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: JobVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    /// Submit a job.
    Submit(JobSubmit),
    /// Show a job as it stands.
    #[command(visible_alias = "show")]
    Get(JobName),
    /// List jobs.
    #[command(visible_alias = "list")]
    Ls(JobList),
    /// Wait for the end of a job.
    Wait(JobWait),
    /// Ask for jobs to be cancelled.
    Cancel(JobCancel),
    /// Run an ended job again, as a new job.
    Retry(JobRetry),
    /// Print the result of a job and let it be forgotten soon.
    Take(JobName),
    /// Forget the ends of jobs.
    #[command(visible_alias = "remove")]
    Rm(JobRemove),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobName {
    /// Id of the job.
    pub(crate) job: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobSubmit {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Payload as JSON; - reads it from stdin.
    pub(crate) data: Option<String>,
    /// Lane of the job.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Type of the job.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// The payload is text, sent as a JSON string.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Which processor answers [default: the stream's only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,
    /// Begin only after this time, such as 5s.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) delay: Option<String>,
    /// 0, 1 or 2: higher goes first, between lanes.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<u8>,
    /// Give it up if it has not begun within this time, such as 1h.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) ttl: Option<String>,
    /// How long the result can be read, such as 1d.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) keep: Option<String>,
    /// Names the submission: the same name and payload again is the same job.
    #[arg(long, value_name = "NAME")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait for the end, at most so long, and print the result; the exit code tells how it ended.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobWait {
    /// Id of the job.
    pub(crate) job: String,
    /// At most so long.
    #[arg(long, value_name = "LENGTH", default_value = "1h")]
    pub(crate) timeout: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobList {
    /// Only of this stream.
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: Option<String>,
    /// Only of this status, such as waiting or failed.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only of this lane; needs --stream.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Only of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Only of those that were submitted together.
    #[arg(long, value_name = "BATCH")]
    pub(crate) batch: Option<String>,
    /// Only those accepted since this date, or within this time, such as 1h.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobCancel {
    /// Ids of jobs.
    #[arg(required_unless_present = "batch")]
    pub(crate) jobs: Vec<String>,
    /// All that were submitted together.
    #[arg(long, value_name = "BATCH", conflicts_with = "jobs")]
    pub(crate) batch: Option<String>,
    /// Wait for the end, at most so long.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true, default_missing_value = "30s", conflicts_with = "batch")]
    pub(crate) wait: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobRetry {
    /// Id of the job.
    pub(crate) job: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobRemove {
    /// Ids of jobs.
    #[arg(required = true)]
    pub(crate) jobs: Vec<String>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Arguments of `laneway why`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Id of a job, or name of a stream.
    #[arg(value_name = "JOB | STREAM")]
    pub(crate) what: String,
    /// Key of the lane in the stream.
    pub(crate) key: Option<String>,
    /// Only for this processor.
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) processor: Option<String>,
}
