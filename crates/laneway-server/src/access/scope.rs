//! What a token is good for.

use std::fmt;

/// One kind of call. They do not include each other: a token has every scope that is written beside it, and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Look at anything.
    Read,
    /// Send events and jobs, and decide about one's jobs.
    Write,
    /// Claim, settle and extend.
    Work,
    /// Change streams, processors, lanes and dead letters.
    Admin,
}

impl Scope {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Work, Self::Admin];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Work => "work",
            Self::Admin => "admin",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Several scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scopes(u8);

impl Scopes {
    /// Every scope there is.
    #[cfg(test)]
    pub(crate) fn all() -> Self {
        Self(Scope::ALL.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// Reads names with commas between them.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut scopes = Self::default();
        for name in text.split(',') {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == name).ok_or_else(|| {
                format!(
                    "scope {name:?} is not known; known are read, write, work, admin, with commas between"
                )
            })?;
            scopes.0 |= scope.bit();
        }
        Ok(scopes)
    }

    /// Whether one of them is this.
    pub(crate) fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Scope::ALL.into_iter().filter(|scope| self.has(*scope)).map(Scope::name).collect();
        formatter.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written_and_include_nothing_else() {
        let scopes = Scopes::read("write,read").unwrap();
        assert_eq!(scopes.to_string(), "read,write");
        assert!(!scopes.has(Scope::Work) && !scopes.has(Scope::Admin));
        assert!(!Scopes::read("admin").unwrap().has(Scope::Read));
        assert_eq!(Scopes::all().to_string(), "read,write,work,admin");
        for wrong in ["", "reed", "read,", "read, write"] {
            assert!(Scopes::read(wrong).unwrap_err().contains("is not known"), "{wrong:?}");
        }
    }
}
