//! `laneway schedule …`.

use laneway_client::Client;
use laneway_client::wire::{Schedule, ScheduleSettings};

use super::send::payload;
use super::watch::watched;
use crate::args::{ScheduleAdd, ScheduleVerb};
use crate::exit::Fault;
use crate::output::{Cell, Column, Row, Writer, agree};

pub(super) async fn run(client: &Client, writer: Writer, verb: ScheduleVerb) -> Result<(), Fault> {
    match verb {
        ScheduleVerb::Ls(watch) => {
            watched(writer, &watch, async || {
                let nothing = "no schedules; make one: laneway schedule add NAME --stream STREAM --every 5m";
                writer.list(&client.schedules().await?, nothing)
            })
            .await
        }
        ScheduleVerb::Add(args) => add(client, writer, args).await,
        ScheduleVerb::Rm(args) => {
            let schedule = client.schedule(&args.schedule).await?;
            let what = format!("remove schedule {} of {}", schedule.name, schedule.settings.stream);
            if args.consent.dry_run {
                return writer.done(format!("would {what}"), &schedule, &schedule.name);
            }
            agree(args.consent, &what)?;
            client.delete_schedule(&schedule.name).await?;
            writer.done(format!("schedule {} is removed", schedule.name), &schedule, &schedule.name)
        }
        ScheduleVerb::Run(name) => {
            let run = client.run_schedule(&name.schedule).await?;
            writer.done(format!("schedule {} sent {}", name.schedule, run.reference), &run, &run.reference)
        }
    }
}

async fn add(client: &Client, writer: Writer, args: ScheduleAdd) -> Result<(), Fault> {
    let data = args.data.as_deref().map(payload).transpose();
    let data = data.map_err(|wrong| Fault::usage(format!("--data: {wrong}")))?;
    // What is not said stays as it is.
    let there = match client.schedule(&args.schedule).await {
        Ok(schedule) => schedule.settings,
        Err(error) if error.code() == Some("schedule_not_found") => ScheduleSettings::default(),
        Err(error) => return Err(error.into()),
    };
    // It has either times or lengths, and a zone only for times.
    let zone = if args.every.is_some() { None } else { args.time_zone.or(there.zone) };
    let settings = ScheduleSettings {
        stream: args.stream,
        cron: args.cron,
        zone,
        every: args.every,
        key_b64: if args.key.is_some() { None } else { there.key_b64 },
        key: args.key.or(there.key),
        kind: args.kind.or(there.kind),
        data: data.or(there.data),
        paused: args.paused.unwrap_or(there.paused),
        ..there
    };
    let schedule = client.put_schedule(&args.schedule, &settings).await?;
    let next = schedule.next.first().map(|next| format!(", next at {next}")).unwrap_or_default();
    writer.done(
        format!("schedule {} sends to {}{next}", schedule.name, schedule.settings.stream),
        &schedule,
        &schedule.name,
    )
}

impl Row for Schedule {
    const COLUMNS: &'static [Column] = &[
        Column::left("SCHEDULE").cut(),
        Column::left("STREAM").cut(),
        Column::left("TIMES"),
        Column::left("ZONE"),
        Column::left("NEXT"),
        Column::left("LAST"),
        Column::left("STATUS"),
    ];

    fn id(&self) -> String {
        self.name.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        let times = self
            .settings
            .cron
            .clone()
            .or_else(|| self.settings.every.as_ref().map(|every| format!("every {every}")));
        vec![
            Cell::Text(self.name.clone()),
            Cell::Text(self.settings.stream.clone()),
            Cell::maybe(times),
            Cell::maybe(self.settings.zone.clone()),
            Cell::time(self.next.first().map(String::as_str)),
            Cell::time(self.last_due_at.as_deref()),
            if self.settings.paused { Cell::status("paused") } else { Cell::Text("active".to_owned()) },
        ]
    }
}
