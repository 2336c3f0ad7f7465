//! Assignment by random histories, decisions case by case, documents there and back.

mod assigning;
mod deciding;
mod stored;
