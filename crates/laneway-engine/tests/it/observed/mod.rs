//! What the engine tells of itself: metrics, spans and log lines, and that nothing of it changes what it does.

mod metrics;
mod recorder;
mod silence;
mod spans;
mod subscriber;
