//! Samples of every family for the round-trip tests.
