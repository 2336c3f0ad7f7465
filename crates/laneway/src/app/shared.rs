//! What was declared on an app, shared by all its handles.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use laneway_engine::{Engine, ProcessorSettings};
use parking_lot::Mutex;

use crate::extract::Needs;
use crate::handler::{Erased, Layer};
use crate::record::Record;
use crate::stream::Declared;

/// What all handles of an app share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// The store, if it was opened as a folder.
    #[cfg(feature = "embedded")]
    pub(super) files: Option<laneway_embedded::FileStore>,
    declarations: Mutex<Declarations>,
}

/// What was declared so far.
#[derive(Default)]
pub(crate) struct Declarations {
    pub(crate) states: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(crate) streams: BTreeMap<Arc<str>, Carrying>,
    pub(crate) processors: Vec<Declaration>,
    /// What is wrong for good, told at every start.
    pub(crate) faults: Vec<String>,
}

/// A stream and the records it carries: the type, and the type of its events.
pub(crate) struct Carrying {
    pub(crate) declared: Arc<Declared>,
    pub(crate) records: HashMap<TypeId, &'static str>,
}

/// A processor to be started.
pub(crate) struct Declaration {
    pub(crate) name: Arc<str>,
    pub(crate) stream: Arc<str>,
    pub(crate) settings: ProcessorSettings,
    pub(crate) routes: Vec<(&'static str, Erased)>,
    pub(crate) needs: Needs,
    pub(crate) layers: Vec<Arc<dyn Layer>>,
    pub(crate) started: bool,
    /// It was changed since: what runs does not know.
    pub(crate) changed: bool,
}

impl Declaration {
    /// It does not run any more: what was changed counts from the next start on.
    pub(super) fn stopped(&mut self) {
        (self.started, self.changed) = (false, false);
    }
}

impl Shared {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            #[cfg(feature = "embedded")]
            files: None,
            declarations: Mutex::default(),
        }
    }

    /// The same on a store that was opened as a folder.
    #[cfg(feature = "embedded")]
    pub(super) fn with_files(self, files: Option<laneway_embedded::FileStore>) -> Self {
        Self { files, ..self }
    }

    /// Remembers what is wrong, once.
    pub(crate) fn fault(&self, fault: String) {
        self.change(|declarations| {
            if !declarations.faults.contains(&fault) {
                declarations.faults.push(fault);
            }
        });
    }

    pub(crate) fn change<A>(&self, change: impl FnOnce(&mut Declarations) -> A) -> A {
        change(&mut self.declarations.lock())
    }

    pub(super) fn stream<T: Record>(&self, name: &str) -> Arc<Declared> {
        self.change(|declarations| {
            let carrying = declarations.streams.entry(Arc::from(name));
            let carrying = carrying.or_insert_with(|| Carrying {
                declared: Arc::new(Declared::new(name)),
                records: HashMap::new(),
            });
            carrying.records.insert(TypeId::of::<T>(), T::KIND);
            Arc::clone(&carrying.declared)
        })
    }

    pub(crate) fn streams(&self) -> Vec<Arc<Declared>> {
        self.change(|declarations| {
            declarations.streams.values().map(|carrying| Arc::clone(&carrying.declared)).collect()
        })
    }
}
