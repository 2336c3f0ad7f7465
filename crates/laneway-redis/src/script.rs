//! The scripts: one per method, each in a file of its own, put together from the pieces it uses.

use redis::Script;

/// All scripts of the store.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) append: Source,
    pub(crate) clock: Source,
    pub(crate) commit: Source,
    pub(crate) define: Source,
    pub(crate) documents: Source,
    pub(crate) import: Source,
    pub(crate) jobs: Source,
    pub(crate) lanes: Source,
    pub(crate) place: Source,
    pub(crate) promote: Source,
    pub(crate) query: Source,
    pub(crate) read: Source,
    pub(crate) request: Source,
    pub(crate) seize: Source,
    pub(crate) stash: Source,
    pub(crate) trim: Source,
}

/// A script and the name under which the server keeps it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) hash: String,
    /// Whether it may change something, so that replicas are waited for.
    pub(crate) writes: bool,
}

const COMMON: &str = include_str!("lua/common.lua");
const BASE: &str = include_str!("lua/base.lua");
const JOINS: &str = include_str!("lua/joins.lua");
const LANED: &str = include_str!("lua/laned.lua");
const END: &str = include_str!("lua/end.lua");

fn writing(pieces: &[&str]) -> Source {
    Source { writes: true, ..reading(pieces) }
}

fn reading(pieces: &[&str]) -> Source {
    let code = [&[COMMON], pieces, &[END]].concat().join("\n");
    Source { hash: Script::new(&code).get_hash().to_owned(), code, writes: false }
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            append: writing(&[BASE, JOINS, include_str!("lua/plain.lua"), include_str!("lua/append.lua")]),
            clock: writing(&[include_str!("lua/clock.lua")]),
            commit: writing(&[BASE, LANED, include_str!("lua/commit.lua")]),
            define: writing(&[include_str!("lua/define.lua")]),
            documents: writing(&[include_str!("lua/documents.lua")]),
            import: writing(&[BASE, JOINS, LANED, include_str!("lua/import.lua")]),
            jobs: writing(&[BASE, JOINS, LANED, include_str!("lua/jobs.lua")]),
            lanes: reading(&[BASE, LANED, include_str!("lua/lanes.lua")]),
            place: writing(&[BASE, include_str!("lua/place.lua")]),
            promote: writing(&[BASE, JOINS, include_str!("lua/promote.lua")]),
            query: reading(&[BASE, include_str!("lua/query.lua")]),
            read: reading(&[BASE, include_str!("lua/read.lua")]),
            request: writing(&[BASE, include_str!("lua/request.lua")]),
            seize: writing(&[BASE, include_str!("lua/seize.lua")]),
            stash: writing(&[BASE, include_str!("lua/stash.lua")]),
            trim: writing(&[BASE, JOINS, include_str!("lua/trim.lua")]),
        }
    }

    /// Every script, to have the server know them before the first call.
    pub(crate) fn all(&self) -> [&Source; 16] {
        [
            &self.append,
            &self.clock,
            &self.commit,
            &self.define,
            &self.documents,
            &self.import,
            &self.jobs,
            &self.lanes,
            &self.place,
            &self.promote,
            &self.query,
            &self.read,
            &self.request,
            &self.seize,
            &self.stash,
            &self.trim,
        ]
    }
}
