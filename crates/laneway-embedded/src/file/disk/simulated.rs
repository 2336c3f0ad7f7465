//! An in-memory disk for tests, with power cuts and failing calls.
