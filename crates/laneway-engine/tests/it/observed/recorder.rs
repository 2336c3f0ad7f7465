//! A recorder that keeps everything it is told on this thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, LocalRecorderGuard, Metadata,
    Recorder, SharedString, Unit,
};
use parking_lot::Mutex;

/// Everything that was told, by name and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<BTreeMap<Name, Value>>>);

/// A name with its labels.
type Name = (String, Vec<(String, String)>);

#[derive(Debug, Default)]
struct Value {
    kind: &'static str,
    told: Vec<f64>,
}

struct Meter {
    told: Told,
    name: Name,
}

impl Told {
    /// Listens to this thread as long as the guard lives.
    pub(crate) fn listen(&self) -> LocalRecorderGuard<'_> {
        metrics::set_default_local_recorder(self)
    }

    fn register(&self, kind: &'static str, key: &Key) -> Arc<Meter> {
        let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned()));
        let name = (key.name().to_owned(), labels.collect());
        self.0.lock().entry(name.clone()).or_insert(Value { kind, told: Vec::new() });
        Arc::new(Meter { told: self.clone(), name })
    }

    /// All names with their kinds and labels, each once.
    pub(crate) fn names(&self) -> BTreeMap<String, (String, Vec<String>)> {
        let all = self.0.lock();
        let about = |((name, labels), value): (&Name, &Value)| {
            let labels = labels.iter().map(|(label, _)| label.clone()).collect();
            (name.clone(), (value.kind.to_owned(), labels))
        };
        all.iter().map(about).collect()
    }

    /// Every value of every label.
    pub(crate) fn label_values(&self) -> Vec<String> {
        self.0.lock().keys().flat_map(|(_, labels)| labels.iter().map(|(_, value)| value.clone())).collect()
    }

    /// The sum of what was told under a name with this label value, or with any: of gauges as they stand.
    pub(crate) fn sum(&self, name: &str, label: &str) -> f64 {
        self.told(name, label).iter().sum()
    }

    /// Everything that was told under a name with this label value, or with any.
    pub(crate) fn told(&self, name: &str, label: &str) -> Vec<f64> {
        let all = self.0.lock();
        let is_meant =
            |labels: &[(String, String)]| label.is_empty() || labels.iter().any(|(_, value)| value == label);
        let found = all.iter().filter(|((found, labels), _)| found == name && is_meant(labels));
        found.flat_map(|(_, value)| value.told.clone()).collect()
    }
}

impl Recorder for Told {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.register("counter", key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.register("gauge", key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.register("histogram", key))
    }
}

impl Meter {
    fn tell(&self, change: impl FnOnce(&mut Vec<f64>)) {
        let mut all = self.told.0.lock();
        change(&mut all.get_mut(&self.name).expect("it is registered").told);
    }
}

impl CounterFn for Meter {
    #[expect(clippy::cast_precision_loss, reason = "small numbers in a test")]
    fn increment(&self, value: u64) {
        self.tell(|told| told.push(value as f64));
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers in a test")]
    fn absolute(&self, value: u64) {
        self.tell(|values| *values = vec![value as f64]);
    }
}

impl GaugeFn for Meter {
    fn increment(&self, _: f64) {
        panic!("the engine sets its gauges");
    }

    fn decrement(&self, _: f64) {
        panic!("the engine sets its gauges");
    }

    fn set(&self, value: f64) {
        self.tell(|told| *told = vec![value]);
    }
}

impl HistogramFn for Meter {
    fn record(&self, value: f64) {
        self.tell(|told| told.push(value));
    }
}
