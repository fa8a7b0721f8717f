//! The results of an earlier attempt, and whether they count.

use jiff::Timestamp;

use crate::host::linux::store;
use crate::host::paths::Root;
use crate::outcome::{Outcome, Unreadable};
use crate::run::{Identity, Run};
use crate::summary::Summary;

/// The name of an attempt that only had to prepare the base of an image.
pub(crate) const BASE_PREPARED: &str = "base-prep";

/// The results on disk at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leftovers {
    /// When `provision.complete`, or the result for a full disk, was written.
    pub(crate) complete: Option<Timestamp>,
    pub(crate) result: Option<Result<Outcome, Unreadable>>,
    /// When the result was written.
    pub(crate) written: Option<Timestamp>,
    /// `provision.succeeded` or `provision.failed`.
    pub(crate) mark: Option<Summary>,
    /// `base_prep.complete`.
    pub(crate) base_prep: Option<Timestamp>,
}

/// What a new attempt does with existing results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// There are no results: begin.
    Begin,
    /// The results are a success of this machine: nothing is left to do.
    Adopt,
    /// The results are moved away for this reason.
    SetAside(&'static str),
}

impl Leftovers {
    /// Reads the results.
    pub(crate) fn observe(root: &Root) -> Self {
        let modified = |path: &std::path::Path| {
            let time = path.metadata().and_then(|data| data.modified()).ok()?;
            Timestamp::try_from(time).ok()
        };
        let spare = store::head(&root.spare_result(), 1 << 20).ok();
        let complete = modified(&root.complete());
        let result = match (spare, store::head(&root.result(), 1 << 20)) {
            (Some(text), _) | (None, Ok(text)) => Some(Outcome::read(&text)),
            (None, Err(_)) if complete.is_none() => None,
            (None, Err(error)) => {
                let what = go_error(&error);
                let path = root.told(&root.result());
                Some(Err(Unreadable::NotRead(format!("open {path}: {what}"))))
            }
        };
        let marks = [root.failed(), root.succeeded()];
        Self {
            complete: complete.or_else(|| modified(&root.spare_result())),
            result,
            written: modified(&root.spare_result()).or_else(|| modified(&root.result())),
            mark: marks
                .iter()
                .find_map(|path| serde_json::from_str(&store::head(path, 64 * 1024).ok()?).ok()),
            base_prep: modified(&root.base_prep()),
        }
    }

    /// Why the results do not belong to this machine, if they do not.
    pub(crate) fn foreign(&self, identity: &Identity, run: Option<&Run>) -> Option<&'static str> {
        let machine = self.mark.as_ref().and_then(|mark| mark.machine.as_ref());
        let machine = machine.or_else(|| run.filter(|run| self.is_of(run))?.machine_id.as_ref());
        match (machine, &identity.machine) {
            (Some(theirs), Some(ours)) if theirs != ours => Some("it is of another machine"),
            (Some(_), Some(_)) => None,
            _ if identity.copied => Some("the disk was copied from another instance"),
            _ => None,
        }
    }

    /// Whether the results were written during or after the attempt: the attempt moved away older results.
    pub(crate) fn is_of(&self, run: &Run) -> bool {
        self.is_marked_by(run) || self.complete.is_some_and(|at| at >= run.started)
    }

    fn is_marked_by(&self, run: &Run) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.run.as_ref() == Some(&run.id))
    }

    /// The results that did not exist before. A file that could not be moved away is not a result of a later
    /// attempt.
    pub(crate) fn without(mut self, before: &Self) -> Self {
        if before.complete.is_some() && self.complete == before.complete {
            self.complete = None;
        }
        if before.written.is_some() && self.written == before.written {
            self.result = None;
        }
        self
    }

    /// Whether the attempt has ended, with all files that belong to its end.
    pub(crate) fn concludes(&self, run: &Run) -> bool {
        self.is_marked_by(run) && self.complete.is_some()
            || run.name.as_deref() == Some(BASE_PREPARED)
    }

    /// Whether this is a result of an attempt that began then. The scripts report success before they have
    /// succeeded: without `provision.complete`, only a failure counts.
    pub(crate) fn counts_since(&self, begun: Timestamp) -> bool {
        let since = |at: Option<Timestamp>| at.is_some_and(|at| at >= begun);
        let failed = matches!(&self.result, Some(Ok(outcome)) if outcome.exit != 0);
        since(self.complete) || failed && since(self.written)
    }

    pub(crate) fn decide(&self, identity: &Identity, run: Option<&Run>) -> Decision {
        if self.complete.is_none() && self.result.is_none() && self.mark.is_none() {
            return Decision::Begin;
        }
        if let Some(why) = self.foreign(identity, run) {
            return Decision::SetAside(why);
        }
        // An agent that began an attempt and left these results in place had already checked their origin.
        let passed_over = run.is_some_and(|run| !self.is_of(run));
        match (&self.result, self.complete) {
            (Some(Ok(_)), Some(_)) if passed_over => {
                Decision::SetAside("it is older than the attempt that was interrupted")
            }
            (Some(Ok(outcome)), Some(_)) if outcome.exit == 0 => Decision::Adopt,
            (Some(Ok(outcome)), _) if outcome.exit != 0 => Decision::SetAside("it failed"),
            (Some(Ok(_)), _) => Decision::SetAside("it was not finished"),
            (Some(Err(_)) | None, _) => Decision::SetAside("its result cannot be read"),
        }
    }
}

/// The text of an error as Go, and so every reader of upstream's messages, knows it.
pub(crate) fn go_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "too many levels of symbolic links".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(exit: i32, machine: Option<&str>) -> Leftovers {
        let mut mark = Summary::new(exit, "");
        mark.machine = machine.map(str::to_owned);
        Leftovers {
            complete: Some(Timestamp::UNIX_EPOCH),
            result: Some(Ok(Outcome::own(exit, "", ""))),
            written: None,
            mark: machine.map(|_| mark),
            base_prep: None,
        }
    }

    fn here(copied: bool) -> Identity {
        Identity { boot: None, machine: Some("here".to_owned()), copied }
    }

    #[test]
    fn a_success_of_this_machine_is_adopted_stamped_or_not() {
        assert_eq!(left(0, None).decide(&here(false), None), Decision::Adopt);
        assert_eq!(left(0, Some("here")).decide(&here(true), None), Decision::Adopt);
    }

    #[test]
    fn what_is_of_another_machine_or_failed_or_unreadable_is_set_aside() {
        let set_aside = |left: Leftovers, copied| {
            matches!(left.decide(&here(copied), None), Decision::SetAside(_))
        };
        assert!(set_aside(left(0, Some("there")), false));
        assert!(set_aside(left(0, None), true));
        assert!(set_aside(left(211, Some("here")), false));
        let unreadable = Leftovers { result: Some(Err(Unreadable::NoCode)), ..left(0, None) };
        assert!(set_aside(unreadable, false));
        assert!(set_aside(Leftovers { complete: None, ..left(0, None) }, false));
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_success_that_an_interrupted_attempt_passed_over_is_not_adopted() {
        let run = Run::begin(&here(false), at(9), None);
        let decided = |second| {
            Leftovers { complete: Some(at(second)), ..left(0, None) }
                .decide(&here(false), Some(&run))
        };
        assert!(matches!(decided(8), Decision::SetAside(_)));
        assert_eq!(decided(9), Decision::Adopt);
    }

    #[test]
    fn what_could_not_be_moved_away_is_no_result_of_what_came_later() {
        let old = Leftovers { complete: Some(at(5)), written: Some(at(4)), ..left(0, None) };
        let none = old.clone().without(&old);
        assert!(none.complete.is_none() && none.result.is_none());
        let new = Leftovers { complete: Some(at(3)), written: Some(at(3)), ..left(0, None) };
        let new = new.without(&old);
        assert!(new.complete.is_some() && new.result.is_some());
    }

    #[test]
    fn without_the_end_only_a_failure_counts() {
        let without = |exit| Leftovers { complete: None, written: Some(at(5)), ..left(exit, None) };
        assert!(without(50).counts_since(at(5)) && !without(50).counts_since(at(6)));
        assert!(!without(0).counts_since(at(5)));
        let ended = Leftovers { complete: Some(at(5)), ..left(0, None) };
        assert!(ended.counts_since(at(5)) && !ended.counts_since(at(6)));
    }

    #[test]
    fn where_nothing_is_an_attempt_begins() {
        assert_eq!(Leftovers::default().decide(&here(true), None), Decision::Begin);
    }
}
