//! What a handler can ask for in its arguments.
//!
//! The first argument is what came: [`Event`], [`Job`], [`LaneBatch`] or [`HeadBatch`]. All others are extracted from the run's
//! [`Scope`], in any order: [`LaneState`], [`Object`], [`Emit`], [`Ctx`], [`State`], or a type of yours;
//! beside a [`HeadBatch`], what belongs to one lane comes as [`Each`].

mod came;
mod ctx;
mod each;
mod emit;
mod heads;
mod lane_state;
mod needs;
mod object;
mod scope;
mod state;

pub(crate) use came::OneByOne;
pub use came::{Event, Job, LaneBatch};
pub use ctx::Ctx;
pub use each::Each;
pub use emit::Emit;
pub(crate) use heads::Said;
pub use heads::{HeadBatch, OverLanes};
pub use lane_state::LaneState;
pub use needs::{Extract, Needs};
pub use object::Object;
pub use scope::Scope;
pub(crate) use scope::{Ground, ScopeParts};
pub use state::State;
