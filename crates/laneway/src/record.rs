//! How a type becomes events: which field names the lane, and what kind of event it is.
//!
//! Usually derived. Serialising is serde's; checking the length of a key is the store's.
//!
//! ```
//! use laneway::Record;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "account")]
//! struct PaymentMade {
//!     account: String,
//!     cents: i64,
//! }
//!
//! let payment = PaymentMade { account: "a1".to_owned(), cents: -500 };
//! assert_eq!(payment.key().as_deref(), Some(&b"a1"[..]));
//! assert_eq!(PaymentMade::KIND, "payment-made");
//! ```
//!
//! For streams where only the newest state of a thing counts, fields say which state it is:
//!
//! ```
//! # use laneway::Record;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "name", kind = "pod.changed", generation = "revision", deleted = "gone")]
//! struct Pod {
//!     name: String,
//!     revision: u64,
//!     gone: bool,
//! }
//!
//! let pod = Pod { name: "web".to_owned(), revision: 7, gone: false };
//! assert_eq!((pod.generation(), pod.incarnation(), pod.deleted()), (Some(7), 0, false));
//! ```
//!
//! A field that can be no key is refused where it is named:
//!
//! ```compile_fail,E0277
//! # use laneway::Record;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "weight")] // `f64` cannot be the key of a record
//! struct Parcel {
//!     weight: f64,
//! }
//! ```

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Bytes, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values are sent as events. Usually derived; by hand where a lane has no field of its own:
///
/// ```
/// use laneway::Record;
/// use serde::{Deserialize, Serialize};
/// use std::borrow::Cow;
///
/// #[derive(Serialize, Deserialize)]
/// struct Transferred {
///     bank: String,
///     account: u64,
///     cents: i64,
/// }
///
/// impl Record for Transferred {
///     const KIND: &'static str = "transferred";
///
///     /// Accounts of two banks may have one number.
///     fn key(&self) -> Option<Cow<'_, [u8]>> {
///         Some(Cow::Owned(format!("{}/{}", self.bank, self.account).into_bytes()))
///     }
/// }
/// let transferred = Transferred { bank: "north".to_owned(), account: 17, cents: 500 };
/// assert_eq!(transferred.key().as_deref(), Some(&b"north/17"[..]));
/// ```
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The type of the events. The derive takes the name of the Rust type, `OrderPaid` as `order-paid`.
    const KIND: &'static str;

    /// The lane: events with equal keys run in order. `None` wants no order.
    fn key(&self) -> Option<Cow<'_, [u8]>>;

    /// Where the newest wins: which state of the thing this is. `None` takes one more than the newest accepted.
    fn generation(&self) -> Option<u64> {
        None
    }

    /// Where the newest wins: which life of the thing this is; higher is newer.
    fn incarnation(&self) -> u64 {
        0
    }

    /// Where the newest wins: whether this ends the life of the thing.
    fn deleted(&self) -> bool {
        false
    }
}

/// A record whose sender wants its result.
///
/// ```
/// use laneway::{Job, JobRecord, Record};
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
///
/// #[derive(Job, Serialize, Deserialize)]
/// #[job(key = "account", output = "Statement", processor = "statements", timeout = "30s")]
/// struct MakeStatement {
///     account: String,
///     month: String,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Statement {
///     total: i64,
/// }
///
/// assert_eq!(MakeStatement::KIND, "make-statement");
/// assert_eq!(MakeStatement::PROCESSOR, Some("statements"));
/// assert_eq!(MakeStatement::TIMEOUT, Some(Duration::from_secs(30)));
/// let answer: <MakeStatement as JobRecord>::Output = Statement { total: 0 };
/// ```
pub trait JobRecord: Record {
    /// What the handler answers.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Which processor answers. Default: the stream's only one.
    const PROCESSOR: Option<&'static str> = None;

    /// How long one run may take. Default: as the processor says.
    const TIMEOUT: Option<Duration> = None;

    /// How long the result can be read. Default: as the stream says ([`Stream::keep_done`](crate::Stream::keep_done)).
    const KEEP: Option<Duration> = None;
}

/// A field that can name a lane.
///
/// Text and bytes are taken as they are, whole numbers as decimal text, an absent option as "no order wanted". A type
/// of your own joins in with one line:
///
/// ```
/// use laneway::record::KeyField;
/// use std::borrow::Cow;
///
/// struct AccountNumber([u8; 4]);
///
/// impl KeyField for AccountNumber {
///     fn key(&self) -> Option<Cow<'_, [u8]>> {
///         self.0.key()
///     }
/// }
/// assert_eq!(Some(42).key().as_deref(), Some(&b"42"[..]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a record",
    label = "names a field of type `{Self}`",
    note = "a key is text, bytes, a whole number or an option of these; implement `laneway::record::KeyField` for others"
)]
pub trait KeyField {
    /// The bytes of the key, if there is one.
    fn key(&self) -> Option<Cow<'_, [u8]>>;
}

/// A field that can say which state or which life of a thing an event speaks of. A type of your own joins in:
///
/// ```
/// use laneway::Record;
/// use laneway::record::NumberField;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Revision(u64);
///
/// impl NumberField for Revision {
///     fn number(&self) -> Option<u64> {
///         Some(self.0)
///     }
/// }
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "name", generation = "revision")]
/// struct Pod {
///     name: String,
///     revision: Revision,
/// }
/// assert_eq!(Pod { name: "web".to_owned(), revision: Revision(7) }.generation(), Some(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the generation or incarnation of a record",
    label = "names a field of type `{Self}`",
    note = "it is a `u64`, a smaller unsigned number or an option of these"
)]
pub trait NumberField {
    /// The number, if there is one.
    fn number(&self) -> Option<u64>;
}

macro_rules! borrowed_keys {
    ($($type:ty),*) => {$(
        impl KeyField for $type {
            fn key(&self) -> Option<Cow<'_, [u8]>> {
                Some(Cow::Borrowed(self.as_ref()))
            }
        }
    )*};
}

macro_rules! decimal_keys {
    ($($type:ty),*) => {$(
        impl KeyField for $type {
            fn key(&self) -> Option<Cow<'_, [u8]>> {
                Some(Cow::Owned(self.to_string().into_bytes()))
            }
        }
    )*};
}

macro_rules! pointed_keys {
    ($($pointer:ty),*) => {$(
        impl<T: KeyField + ?Sized> KeyField for $pointer {
            fn key(&self) -> Option<Cow<'_, [u8]>> {
                (**self).key()
            }
        }
    )*};
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl NumberField for $type {
            fn number(&self) -> Option<u64> {
                Some(u64::from(*self))
            }
        }
    )*};
}

borrowed_keys!(str, String, [u8], Vec<u8>, Bytes, Key);
decimal_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
pointed_keys!(&T, Box<T>, Arc<T>);
numbers!(u8, u16, u32, u64);

impl<const LEN: usize> KeyField for [u8; LEN] {
    fn key(&self) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(self))
    }
}

impl<T: KeyField + ToOwned + ?Sized> KeyField for Cow<'_, T> {
    fn key(&self) -> Option<Cow<'_, [u8]>> {
        (**self).key()
    }
}

impl<T: KeyField> KeyField for Option<T> {
    fn key(&self) -> Option<Cow<'_, [u8]>> {
        self.as_ref()?.key()
    }
}

impl<T: NumberField> NumberField for Option<T> {
    fn number(&self) -> Option<u64> {
        self.as_ref()?.number()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{Job, Record};

    #[track_caller]
    fn check_key(field: impl KeyField, expected: Option<&[u8]>) {
        assert_eq!(field.key().as_deref(), expected);
    }

    #[test]
    fn text_and_bytes_are_keys_as_they_are_and_numbers_are_decimal_text() {
        check_key("a1", Some(b"a1"));
        check_key("a1".to_owned(), Some(b"a1"));
        check_key(Cow::Borrowed("a1"), Some(b"a1"));
        check_key(Box::<str>::from("a1"), Some(b"a1"));
        check_key(Arc::<str>::from("a1"), Some(b"a1"));
        check_key(vec![0xff_u8, 0], Some(&[0xff, 0]));
        check_key([0xff_u8, 0], Some(&[0xff, 0]));
        check_key(Bytes::from_static(b"a1"), Some(b"a1"));
        check_key(-17_i64, Some(b"-17"));
        check_key(u128::MAX, Some(b"340282366920938463463374607431768211455"));
        check_key(Some("a1"), Some(b"a1"));
        check_key(None::<u64>, None);
        check_key(Some(None::<u64>), None);
    }

    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "type", generation = "version", incarnation = "life", deleted = "gone")]
    struct Thing {
        r#type: Option<u32>,
        version: Option<u32>,
        life: u16,
        gone: bool,
    }

    #[test]
    fn a_derived_record_reads_the_fields_it_names() {
        let thing = Thing { r#type: Some(5), version: Some(9), life: 2, gone: true };
        check_key(thing.key().map(Cow::into_owned), Some(b"5"));
        assert_eq!((thing.generation(), thing.incarnation(), thing.deleted()), (Some(9), 2, true));
        let bare = Thing { r#type: None, version: None, life: 0, gone: false };
        assert_eq!((bare.key(), bare.generation()), (None, None));
        assert_eq!(Thing::KIND, "thing");
    }

    #[derive(Record, Serialize, Deserialize)]
    #[record(keyless, kind = "clock.ticked")]
    struct Tick;

    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "1")]
    struct Pair(i64, String);

    #[test]
    fn a_record_may_be_keyless_or_have_numbered_fields() {
        assert_eq!((Tick::KIND, Tick.key()), ("clock.ticked", None));
        assert_eq!((Tick.generation(), Tick.incarnation(), Tick.deleted()), (None, 0, false));
        check_key(Pair(3, "b".to_owned()).key().map(Cow::into_owned), Some(b"b"));
    }

    #[derive(Job, Serialize, Deserialize)]
    #[job(key = "account", output = "Vec<u32>", keep = "1h30m")]
    struct Count {
        account: String,
    }

    #[test]
    fn a_derived_job_is_a_record_with_an_output() {
        let output: <Count as JobRecord>::Output = vec![1];
        assert_eq!((Count::KIND, output.len()), ("count", 1));
        assert_eq!((Count::PROCESSOR, Count::TIMEOUT), (None, None));
        assert_eq!(Count::KEEP, Some(Duration::from_secs(5_400)));
        check_key(Count { account: "a1".to_owned() }.key().map(Cow::into_owned), Some(b"a1"));
    }
}
