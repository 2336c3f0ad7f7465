//! The panic fence: code of the user that panics costs its own push at most, never a worker or somebody's wake-up.
//!
//! Handlers, keys and the destructors of everything the user hands in run behind it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does something of the user's; answers the words of the panic if it panics.
///
/// What `action` borrows must be fit for use, or not used, after a panic.
pub(super) fn fenced<A>(action: impl FnOnce() -> A) -> Result<A, String> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|panic| {
        let message = panic_message(&*panic);
        // The payload of a panic is a value of the user's too.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(second);
        }
        message
    })
}

/// Drops a value of the user's. The panic hook has told whatever its destructor had to say.
pub(super) fn discard<A>(value: A) {
    let told = fenced(|| drop(value));
    drop(told);
}

/// The words of a panic, as far as it has any.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
