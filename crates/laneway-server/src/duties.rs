//! What this process does of all there is to do: its role, and the processors it was chosen for.
//!
//! Roles apart need a store that several processes share; `settings` refuses them on any other.

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything.
    All,
    /// Answers calls and remote workers; runs no handler.
    Api,
    /// Runs handlers; remote workers claim elsewhere.
    Engine,
}

impl Role {
    /// All roles by their words.
    pub(crate) const WORDS: [(&str, Self); 3] =
        [("all", Self::All), ("api", Self::Api), ("engine", Self::Engine)];

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Engine => "engine",
        }
    }
}

/// Who runs the events of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A handler of the process.
    Handler,
    /// Remote workers.
    Workers,
}

/// What this process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Duties {
    /// What it is for.
    pub(crate) role: Role,
    /// The only processors that it runs; none: all of them.
    pub(crate) processors: Vec<String>,
    /// What people know it by.
    pub(crate) tags: Vec<String>,
}

impl Duties {
    /// Everything.
    pub(crate) fn all() -> Self {
        Self { role: Role::All, processors: Vec::new(), tags: Vec::new() }
    }

    /// Whether a processor is run here.
    pub(crate) fn runs(&self, processor: &str, runner: Runner) -> bool {
        let is_chosen = self.processors.is_empty() || self.processors.iter().any(|name| name == processor);
        let is_ours = match self.role {
            Role::All => true,
            Role::Api => runner == Runner::Workers,
            Role::Engine => runner == Runner::Handler,
        };
        is_chosen && is_ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_and_a_choice_say_together_what_runs_here() {
        let runs = |role, chosen: &[&str]| {
            let processors = chosen.iter().map(|name| (*name).to_owned()).collect();
            let duties = Duties { role, processors, tags: Vec::new() };
            let mut runs = Vec::new();
            for (name, runner) in [("charge", Runner::Handler), ("mail", Runner::Workers)] {
                runs.extend(duties.runs(name, runner).then_some(name));
            }
            runs
        };
        assert_eq!(runs(Role::All, &[]), ["charge", "mail"]);
        assert_eq!(runs(Role::All, &["mail"]), ["mail"]);
        assert_eq!(runs(Role::Api, &[]), ["mail"]);
        assert_eq!(runs(Role::Engine, &[]), ["charge"]);
        assert!(runs(Role::Engine, &["mail"]).is_empty());
        assert!(Role::WORDS.iter().all(|(word, role)| role.word() == *word));
    }
}
