//! A processor as it is stored: its settings, and what its caller says of the handler.
//!
//! The form is a version and then fields, each with a number, a length and its bytes; a field that is absent has its
//! default. So a field can be added without a new version: an older reader finds a number it does not know and refuses
//! the whole, because settings that are half understood are other settings. The handler comes last and is always there,
//! so that a form that was cut off is not taken for a shorter one.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use laneway_core::limits::{ATTEMPTS_MAX, RETRY_AFTER_MAX};
use laneway_core::{EventId, StartAt, Timestamp};

use super::settings::{Batch, ProcessorSettings};
use crate::handler::{OnFailure, Policy};

const VERSION: u8 = 1;

/// What a processor was registered with.
///
/// ```
/// use laneway_engine::{ProcessorSettings, StoredProcessor};
/// let stored = StoredProcessor {
///     settings: ProcessorSettings { concurrency: 8, ..ProcessorSettings::default() },
///     handler: "exec: ./charge.sh".into(),
/// };
/// assert_eq!(StoredProcessor::decode(stored.encode()).unwrap(), stored);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredProcessor {
    /// How it runs its events.
    pub settings: ProcessorSettings,
    /// What kind of handler it has, in the words of whoever registered it; the engine does not read it. Default: empty.
    pub handler: Bytes,
}

/// Why stored settings cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A newer program wrote them.
    #[error("settings of a processor have version {version} and this program reads up to {VERSION}")]
    NewerVersion {
        /// Theirs.
        version: u8,
    },
    /// A newer program of the same version wrote a field that this one does not know.
    #[error("settings of a processor have field {field}, which this program does not know")]
    NewerField {
        /// Its number.
        field: u8,
    },
    /// They are not what [`StoredProcessor::encode`] writes.
    #[error("settings of a processor are damaged at field {field}")]
    Malformed {
        /// The field that is being read; 0 before the first.
        field: u8,
    },
}

/// Numbers of the fields. One is never used again for something else.
mod field {
    pub(super) const CONCURRENCY: u8 = 1;
    pub(super) const TIMEOUT: u8 = 2;
    pub(super) const MAX_ATTEMPTS: u8 = 3;
    pub(super) const BACKOFF: u8 = 4;
    pub(super) const BACKOFF_MAX: u8 = 5;
    pub(super) const ON_FAILURE: u8 = 6;
    pub(super) const CRASHES_MAX: u8 = 7;
    pub(super) const BATCH: u8 = 8;
    pub(super) const TYPE: u8 = 9;
    pub(super) const START: u8 = 10;
    pub(super) const RUN_AHEAD: u8 = 11;
    pub(super) const RATE: u8 = 12;
    pub(super) const RATE_PER_KEY: u8 = 13;
    pub(super) const USES_STATE: u8 = 14;
    pub(super) const SUPERSEDE_RUNNING: u8 = 15;
    pub(super) const HANDLER: u8 = 16;
    pub(super) const BATCH_WITHIN: u8 = 17;
    pub(super) const KEEP_LAST: u8 = 18;
}

impl StoredProcessor {
    /// The stored form.
    pub fn encode(&self) -> Bytes {
        // Taken apart by name, so that a new setting cannot be forgotten here.
        let ProcessorSettings {
            concurrency,
            timeout,
            policy: Policy { max_attempts, backoff, backoff_max, on_failure, crashes_max },
            batch,
            types,
            start,
            run_ahead,
            rate,
            rate_per_key,
            uses_state,
            supersede_running,
            keep_last,
        } = &self.settings;
        let mut out = Fields(vec![VERSION]);
        out.number(field::CONCURRENCY, *concurrency as u64);
        timeout.iter().for_each(|length| out.length(field::TIMEOUT, *length));
        out.number(field::MAX_ATTEMPTS, u64::from(*max_attempts));
        out.length(field::BACKOFF, *backoff);
        out.length(field::BACKOFF_MAX, *backoff_max);
        out.number(field::ON_FAILURE, u64::from(failure_code(*on_failure)));
        out.number(field::CRASHES_MAX, u64::from(*crashes_max));
        let (over, max, within) = match *batch {
            Batch::One => (0, 1, Duration::ZERO),
            Batch::Lane { max, within } => (1, max, within),
            Batch::Lanes { max, within } => (2, max, within),
        };
        out.pair(field::BATCH, over, max as u64);
        if !within.is_zero() {
            out.length(field::BATCH_WITHIN, within);
        }
        types.iter().for_each(|kind| out.put(field::TYPE, kind.as_bytes()));
        let (from, place) = match *start {
            StartAt::Beginning => (0, 0),
            StartAt::End => (1, 0),
            StartAt::Id(id) => (2, id.0),
            StartAt::Time(time) => (3, time.0),
        };
        out.pair(field::START, from, place);
        out.number(field::RUN_AHEAD, u64::from(*run_ahead));
        rate.iter().for_each(|rate| out.number(field::RATE, u64::from(*rate)));
        rate_per_key.iter().for_each(|rate| out.number(field::RATE_PER_KEY, u64::from(*rate)));
        out.number(field::USES_STATE, u64::from(*uses_state));
        out.number(field::SUPERSEDE_RUNNING, u64::from(*supersede_running));
        if *keep_last {
            out.number(field::KEEP_LAST, 1);
        }
        out.put(field::HANDLER, &self.handler);
        Bytes::from(out.0)
    }

    /// Reads what [`encode`](Self::encode) wrote. No bytes at all are the defaults: a processor that was registered
    /// before settings were stored.
    ///
    /// # Errors
    /// When a newer program wrote it, or it is damaged.
    pub fn decode(mut bytes: Bytes) -> Result<Self, SettingsError> {
        let mut stored = Self::default();
        if bytes.is_empty() {
            return Ok(stored);
        }
        let version = bytes.get_u8();
        if version > VERSION {
            return Err(SettingsError::NewerVersion { version });
        }
        if version != VERSION {
            return Err(SettingsError::Malformed { field: 0 });
        }
        let mut last = 0;
        while !bytes.is_empty() {
            let field = bytes.get_u8();
            last = field;
            let malformed = SettingsError::Malformed { field };
            let length = bytes.try_get_u32_le().map_err(|_| malformed)? as usize;
            if length > bytes.len() {
                return Err(malformed);
            }
            stored.read(field, bytes.split_to(length))?;
        }
        if last == field::HANDLER { Ok(stored) } else { Err(SettingsError::Malformed { field: last }) }
    }

    fn read(&mut self, field: u8, value: Bytes) -> Result<(), SettingsError> {
        let malformed = SettingsError::Malformed { field };
        let (settings, mut value) = (&mut self.settings, Value { bytes: value, malformed });
        match field {
            field::CONCURRENCY => settings.concurrency = value.size()?,
            field::TIMEOUT => settings.timeout = Some(value.length()?),
            // What was stored before there were limits runs on at the limit.
            field::MAX_ATTEMPTS => settings.policy.max_attempts = value.small()?.min(ATTEMPTS_MAX),
            field::BACKOFF => settings.policy.backoff = value.length()?.min(RETRY_AFTER_MAX),
            field::BACKOFF_MAX => settings.policy.backoff_max = value.length()?.min(RETRY_AFTER_MAX),
            field::ON_FAILURE => {
                let code = value.number()?;
                let known = FAILURES.iter().find(|known| u64::from(failure_code(**known)) == code);
                settings.policy.on_failure = *known.ok_or(malformed)?;
            }
            field::CRASHES_MAX => settings.policy.crashes_max = value.small()?,
            field::BATCH => {
                settings.batch = match (value.byte()?, value.size()?) {
                    (0, _) => Batch::One,
                    (1, max) => Batch::lane(max),
                    (2, max) => Batch::lanes(max),
                    _ => return Err(malformed),
                }
            }
            field::BATCH_WITHIN => match &mut settings.batch {
                Batch::Lane { within, .. } | Batch::Lanes { within, .. } => *within = value.length()?,
                Batch::One => return Err(malformed),
            },
            field::TYPE => settings.types.push(value.text()?),
            field::START => {
                settings.start = match (value.byte()?, value.number()?) {
                    (0, _) => StartAt::Beginning,
                    (1, _) => StartAt::End,
                    (2, id) => StartAt::Id(EventId(id)),
                    (3, time) => StartAt::Time(Timestamp(time)),
                    _ => return Err(malformed),
                }
            }
            field::RUN_AHEAD => settings.run_ahead = value.small()?,
            field::RATE => settings.rate = Some(value.small()?),
            field::RATE_PER_KEY => settings.rate_per_key = Some(value.small()?),
            field::USES_STATE => settings.uses_state = value.flag()?,
            field::SUPERSEDE_RUNNING => settings.supersede_running = value.flag()?,
            field::KEEP_LAST => settings.keep_last = value.flag()?,
            field::HANDLER => self.handler = std::mem::take(&mut value.bytes),
            _ => return Err(SettingsError::NewerField { field }),
        }
        if value.bytes.is_empty() { Ok(()) } else { Err(malformed) }
    }
}

const FAILURES: [OnFailure; 5] =
    [OnFailure::Park, OnFailure::DeadLetter, OnFailure::DeadLetterLane, OnFailure::Halt, OnFailure::Drop];

fn failure_code(on_failure: OnFailure) -> u8 {
    match on_failure {
        OnFailure::Park => 0,
        OnFailure::DeadLetter => 1,
        OnFailure::DeadLetterLane => 2,
        OnFailure::Halt => 3,
        OnFailure::Drop => 4,
    }
}

/// Fields on their way into bytes.
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, field: u8, bytes: &[u8]) {
        self.0.put_u8(field);
        self.0.put_u32_le(u32::try_from(bytes.len()).expect("the store takes no megabytes of settings"));
        self.0.put_slice(bytes);
    }

    fn number(&mut self, field: u8, number: u64) {
        self.put(field, &number.to_le_bytes());
    }

    fn length(&mut self, field: u8, length: Duration) {
        let seconds = length.as_secs().to_le_bytes();
        self.put(field, &[&seconds[..], &length.subsec_nanos().to_le_bytes()].concat());
    }

    fn pair(&mut self, field: u8, code: u8, number: u64) {
        self.put(field, &[&[code][..], &number.to_le_bytes()].concat());
    }
}

/// The value of one field.
struct Value {
    bytes: Bytes,
    malformed: SettingsError,
}

impl Value {
    fn byte(&mut self) -> Result<u8, SettingsError> {
        self.bytes.try_get_u8().map_err(|_| self.malformed)
    }

    fn number(&mut self) -> Result<u64, SettingsError> {
        self.bytes.try_get_u64_le().map_err(|_| self.malformed)
    }

    fn small(&mut self) -> Result<u32, SettingsError> {
        u32::try_from(self.number()?).map_err(|_| self.malformed)
    }

    fn size(&mut self) -> Result<usize, SettingsError> {
        usize::try_from(self.number()?).map_err(|_| self.malformed)
    }

    fn flag(&mut self) -> Result<bool, SettingsError> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed),
        }
    }

    fn length(&mut self) -> Result<Duration, SettingsError> {
        let seconds = self.number()?;
        let nanos = self.bytes.try_get_u32_le().map_err(|_| self.malformed)?;
        if nanos < 1_000_000_000 { Ok(Duration::new(seconds, nanos)) } else { Err(self.malformed) }
    }

    fn text(&mut self) -> Result<String, SettingsError> {
        String::from_utf8(std::mem::take(&mut self.bytes).into()).map_err(|_| self.malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
    }

    fn policies() -> impl Strategy<Value = Policy> {
        (any::<u32>(), lengths(), lengths(), prop::sample::select(&FAILURES[..]), any::<u32>()).prop_map(
            |(max_attempts, backoff, backoff_max, on_failure, crashes_max)| Policy {
                max_attempts: max_attempts.min(ATTEMPTS_MAX),
                backoff: backoff.min(RETRY_AFTER_MAX),
                backoff_max: backoff_max.min(RETRY_AFTER_MAX),
                on_failure,
                crashes_max,
            },
        )
    }

    fn batches() -> impl Strategy<Value = Batch> {
        prop_oneof![
            Just(Batch::One),
            (any::<usize>(), lengths()).prop_map(|(max, within)| Batch::Lane { max, within }),
            (any::<usize>(), lengths()).prop_map(|(max, within)| Batch::Lanes { max, within }),
        ]
    }

    fn starts() -> impl Strategy<Value = StartAt> {
        prop_oneof![
            Just(StartAt::Beginning),
            Just(StartAt::End),
            any::<u64>().prop_map(|id| StartAt::Id(EventId(id))),
            any::<u64>().prop_map(|time| StartAt::Time(Timestamp(time))),
        ]
    }

    fn all_stored() -> impl Strategy<Value = StoredProcessor> {
        let one = (any::<usize>(), prop::option::of(lengths()), policies(), batches());
        let other = (
            prop::collection::vec(".{0,20}", 0..4),
            starts(),
            any::<u32>(),
            prop::option::of(any::<u32>()),
            prop::option::of(any::<u32>()),
            any::<[bool; 3]>(),
            prop::collection::vec(any::<u8>(), 0..40),
        );
        (one, other).prop_map(|((concurrency, timeout, policy, batch), other)| {
            let (types, start, run_ahead, rate, rate_per_key, flags, handler) = other;
            let [uses_state, supersede_running, keep_last] = flags;
            let settings = ProcessorSettings {
                concurrency,
                timeout,
                policy,
                batch,
                types,
                start,
                run_ahead,
                rate,
                rate_per_key,
                uses_state,
                supersede_running,
                keep_last,
            };
            StoredProcessor { settings, handler: handler.into() }
        })
    }

    #[test]
    fn settings_from_before_there_were_limits_are_read_at_the_limit() {
        let policy =
            Policy { max_attempts: u32::MAX, backoff_max: Duration::from_secs(1 << 40), ..Policy::default() };
        let settings = ProcessorSettings { policy, ..ProcessorSettings::default() };
        let stored = StoredProcessor { settings, ..StoredProcessor::default() };
        let read = StoredProcessor::decode(stored.encode()).expect("readable").settings;
        assert_eq!((read.policy.max_attempts, read.policy.backoff_max), (ATTEMPTS_MAX, RETRY_AFTER_MAX));
        read.check().expect("it can be started");
    }

    proptest! {
        #[test]
        fn settings_are_read_back_as_they_were_written(stored in all_stored()) {
            prop_assert_eq!(StoredProcessor::decode(stored.encode()), Ok(stored));
        }

        #[test]
        fn damaged_settings_are_refused_or_other_settings_and_never_a_panic(
            stored in all_stored(), at in any::<prop::sample::Index>(), bits in 1..=255u8, cut in any::<prop::sample::Index>()
        ) {
            let mut bytes = stored.encode().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            if let Ok(read) = StoredProcessor::decode(Bytes::from(bytes.clone())) {
                prop_assert_eq!(StoredProcessor::decode(read.encode()), Ok(read));
            }
            let whole = stored.encode();
            let cut = whole.slice(..cut.index(whole.len() - 1) + 1);
            prop_assume!(cut.len() < whole.len());
            prop_assert!(StoredProcessor::decode(cut).is_err(), "something was cut off");
        }
    }

    #[test]
    fn settings_of_a_newer_program_are_refused() {
        let mut newer = StoredProcessor::default().encode().to_vec();
        newer[0] = VERSION + 1;
        let refused = StoredProcessor::decode(newer.into());
        assert_eq!(refused, Err(SettingsError::NewerVersion { version: VERSION + 1 }));
        let mut newer = Fields(StoredProcessor::default().encode().to_vec());
        newer.put(200, b"what this one does not know");
        newer.put(field::HANDLER, b"");
        let refused = StoredProcessor::decode(newer.0.into());
        assert_eq!(refused, Err(SettingsError::NewerField { field: 200 }));
    }

    #[test]
    fn stored_form_of_the_defaults_is_pinned() {
        let text =
            StoredProcessor::default().encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(text, PINNED);
        assert_eq!(StoredProcessor::decode(Bytes::new()), Ok(StoredProcessor::default()));
    }

    /// What the first program that stored settings wrote.
    const PINNED: &str = concat!(
        "010108000000400000000000000003080000000500000000000000040c000000010000000000000000000000050c0000",
        "002c01000000000000000000000608000000000000000000000007080000000300000000000000080900000000010000",
        "00000000000a090000000000000000000000000b0800000000000000000000000e0800000001000000000000000f0800",
        "000000000000000000001000000000",
    );
}
