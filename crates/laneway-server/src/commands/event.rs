//! `laneway event get REF`.

use laneway_client::Client;
use laneway_client::wire::Event;

use crate::args::EventVerb;
use crate::exit::Fault;
use crate::output::{Cell, Column, Detail, Row, Writer, key_of};

pub(super) async fn run(client: &Client, writer: Writer, verb: EventVerb) -> Result<(), Fault> {
    let EventVerb::Get(name) = verb;
    let (stream, partition, id) = place(&name.reference)?;
    writer.one(&client.event(stream, partition, id).await?)
}

/// The parts of a ref. Names of streams have no `/`.
fn place(reference: &str) -> Result<(&str, u32, u64), Fault> {
    let mut parts = reference.rsplitn(3, '/');
    let id = parts.next().and_then(|id| id.parse().ok());
    let partition = parts.next().and_then(|partition| partition.parse().ok());
    match (parts.next(), partition, id) {
        (Some(stream), Some(partition), Some(id)) if !stream.is_empty() => Ok((stream, partition, id)),
        _ => Err(Fault::usage(format!(
            "{reference:?}: is no ref, must be STREAM/PARTITION/ID such as orders/3/17"
        ))),
    }
}

/// The payload as it is.
fn data(event: &Event) -> Cell {
    let text = event.data.as_ref().map(|data| data.get().to_owned());
    Cell::maybe(text.or_else(|| event.data_b64.as_ref().map(|coded| format!("base64:{coded}"))))
}

impl Row for Event {
    const COLUMNS: &'static [Column] = &[
        Column::left("REF"),
        Column::left("KEY").cut(),
        Column::right("SEQ"),
        Column::left("TYPE").cut(),
        Column::left("TIME"),
        Column::left("DATA").cut(),
    ];

    fn id(&self) -> String {
        self.reference.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.reference.clone()),
            key_of(self.key.as_deref(), self.key_b64.as_deref()),
            self.seq.map_or(Cell::Nothing, Cell::Number),
            Cell::maybe(self.kind.clone()),
            Cell::Time(self.time.clone()),
            data(self),
        ]
    }
}

impl Detail for Event {
    fn id(&self) -> String {
        self.reference.clone()
    }

    fn parts(&self) -> Vec<(&'static str, Cell)> {
        let mut parts = vec![
            ("event", Cell::Text(self.reference.clone())),
            ("key", key_of(self.key.as_deref(), self.key_b64.as_deref())),
            ("prev", self.prev.map_or(Cell::Nothing, Cell::Number)),
            ("seq", self.seq.map_or(Cell::Nothing, Cell::Number)),
            ("type", Cell::maybe(self.kind.clone())),
            ("time", Cell::Time(self.time.clone())),
        ];
        let numbers = [
            ("generation", self.generation),
            ("incarnation", self.incarnation),
            ("priority", self.priority.map(u64::from)),
        ];
        parts.extend(numbers.into_iter().filter_map(|(name, number)| Some((name, Cell::Number(number?)))));
        if self.expires_at.is_some() {
            parts.push(("expires", Cell::time(self.expires_at.as_deref())));
        }
        if self.job.is_some() {
            parts.push(("job", Cell::maybe(self.job.clone())));
        }
        parts.extend(
            self.headers.iter().map(|(name, value)| ("header", Cell::Text(format!("{name}: {value}")))),
        );
        parts.push(("data", data(self)));
        for processor in &self.processors {
            let reason = processor.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let winner = processor.winner.map(|winner| format!(" by {winner}")).unwrap_or_default();
            let words = format!("{} {}{winner}{reason}", processor.processor, processor.status);
            parts.push(("processor", Cell::Text(words)));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_has_three_parts() {
        assert_eq!(place("orders/3/17").unwrap(), ("orders", 3, 17));
        for bad in ["orders", "orders/3", "/3/17", "orders/x/17", "orders/3/-1", ""] {
            assert!(place(bad).unwrap_err().words[0].contains("STREAM/PARTITION/ID"), "{bad}");
        }
    }
}
