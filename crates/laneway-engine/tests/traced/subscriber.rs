//! A subscriber for the whole process that keeps every span and line of the threads that listen, with all their fields.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

static INSTALLED: Once = Once::new();

thread_local! {
    static LISTENING: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Tells each thread's spans and lines to whoever listens there.
struct ByThread;

/// As long as it lives, its thread is listened to.
pub(crate) struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.set(None);
    }
}

/// Everything that was told, of every level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    spans: Vec<(Id, Told)>,
    lines: Vec<Told>,
}

/// A span or a line.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Heard {
    pub(crate) fn new() -> Self {
        INSTALLED.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(ByThread);
            tracing::subscriber::set_global_default(subscriber).expect("there is no other");
        });
        Self::default()
    }

    /// Listens to this thread as long as the guard lives.
    pub(crate) fn listen(&self) -> Listening {
        LISTENING.set(Some(self.clone()));
        Listening
    }

    /// All spans of a name.
    pub(crate) fn spans(&self, name: &str) -> Vec<Told> {
        let inner = self.0.lock();
        inner.spans.iter().map(|(_, told)| told).filter(|told| told.name == name).cloned().collect()
    }

    /// All lines.
    pub(crate) fn lines(&self) -> Vec<Told> {
        self.0.lock().lines.clone()
    }

    /// Everything that was told above a level, as text.
    pub(crate) fn above(&self, level: Level) -> Vec<String> {
        let inner = self.0.lock();
        let all = inner.spans.iter().map(|(_, told)| told).chain(&inner.lines);
        all.filter(|told| told.level < level).map(|told| format!("{told:?}")).collect()
    }
}

impl Told {
    fn new(metadata: &Metadata<'_>) -> Self {
        Self { level: *metadata.level(), name: metadata.name().to_owned(), fields: BTreeMap::new() }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ByThread {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        LISTENING.with_borrow(Option::is_some)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut told = Told::new(attributes.metadata());
        attributes.record(&mut told);
        hear(|inner| inner.spans.push((id.clone(), told)));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        // Ids of spans that are over are given again: the last one is meant.
        hear(|inner| {
            if let Some((_, told)) = inner.spans.iter_mut().rev().find(|(known, _)| known == id) {
                values.record(told);
            }
        });
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut told = Told::new(event.metadata());
        event.record(&mut told);
        hear(|inner| inner.lines.push(told));
    }
}

/// Hands what was told to whoever listens to this thread.
fn hear(tell: impl FnOnce(&mut Inner)) {
    LISTENING.with_borrow(|listening| {
        if let Some(Heard(inner)) = listening {
            tell(&mut inner.lock());
        }
    });
}
