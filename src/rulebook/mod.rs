//! The rules in force: built-in, and each tenant's own from its rule file.
//!
//! Owns `custom-rules.json` (and one file more a tenant) and `audit.log` in the home folder. Every change is on disk
//! first: the file replaced whole and synced, then the line in the log written and synced, then the set in memory swapped;
//! when either fails the file is put back and nothing has changed. One evaluation sees one immutable set. Rules enter
//! through [`Rulebook::deploy`] and its neighbours, which block: call them on a thread that may. Never decides what a
//! rule says.

mod audit;
mod file;
mod pieces;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzed {
    //! For fuzzers.

    /// The bytes of a rule file: what is kept of them is kept again, and no entry is lost.
    pub(crate) fn file(data: &[u8]) {
        let Ok(content) = super::file::understand(data.to_vec()) else { return };
        let text = content.text().expect("it has a text");
        let again = super::file::understand(text.clone().into_bytes()).expect("what is written is read");
        assert_eq!(again.entries.len(), content.entries.len(), "no entry is lost");
        assert_eq!(again.rules().count(), content.rules().count());
        assert_eq!(again.text().expect("it has a text"), text, "written again it is the same");
    }
}
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arc_swap::ArcSwap;
use iris_core::contract::{CustomRule, Quarantined, Replaced};
use iris_core::evaluate::Ruleset;
use iris_core::model::{Tenant, Timestamp};
use iris_core::rules::custom::{BrokenRule, Problem};
use iris_core::rules::{Bundle, Rule};
use serde_json::{Map, Value, json};

use crate::telemetry::now;

pub use audit::{Action, Line, Wanted};

use audit::Audit;
use file::{COMPILED_BYTES_MAX, Content, Entry, Fault, RULES_BYTES_MAX, RULES_MAX, Stamp};

/// Tenants whose rules are kept in memory.
const SHELVES_MAX: usize = 1024;

/// Why a change of the rules was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A deployed rule has that name.
    #[error("a deployed rule has that name")]
    Duplicate(Box<CustomRule>),
    /// The definition is wrong.
    #[error("{0}")]
    Invalid(Problem),
    /// A limit is reached; the text names it.
    #[error("{0}")]
    Full(String),
    /// The rule file cannot be read, and a change would destroy it.
    #[error("the rule file cannot be read: {0}")]
    Unreadable(String),
    /// The file or the log could not be written; nothing has changed.
    #[error("the rules cannot be stored: {0}")]
    NotKept(#[from] io::Error),
}

/// Who changes a rule, and when.
#[derive(Debug, Clone)]
pub struct By {
    /// Whose rules.
    pub tenant: Tenant,
    /// By which way: `mcp`, `dashboard` or `local`.
    pub user: &'static str,
    /// Now, ISO 8601.
    pub at: String,
}

/// A tenant's own rules.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Those that can fire, in the order in which they were deployed.
    pub rules: Vec<CustomRule>,
    /// Entries that cannot be read.
    pub quarantined: Vec<Quarantined>,
}

/// How one tenant's rule file is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileStatus {
    /// Whose.
    pub tenant: String,
    /// `read`, or `unreadable`: nothing passes then.
    pub state: &'static str,
    /// Rules that are deployed.
    pub rules: usize,
    /// Of those, rules that fire.
    pub enabled: usize,
    /// Entries that this version cannot read; they do not fire.
    pub quarantined: usize,
    /// Changes since the start.
    pub changes: u64,
    /// When the rules in force were last taken from the file or put there.
    pub loaded: Timestamp,
}

/// Shared by everything that judges.
#[derive(Clone)]
pub struct Rulebook {
    inner: Arc<Inner>,
}

struct Inner {
    /// Where the files are; without a place there are only built-in rules.
    home: Option<PathBuf>,
    base: Ruleset,
    shelves: RwLock<HashMap<Tenant, Arc<Shelf>>>,
}

/// The rules of one tenant.
struct Shelf {
    path: PathBuf,
    current: ArcSwap<State>,
    /// Held through a change, from reading the file to the swap.
    changing: Mutex<()>,
    changes: AtomicU64,
}

struct State {
    content: Result<Content, String>,
    stamp: Stamp,
    ruleset: Arc<Ruleset>,
    loaded: Timestamp,
}

impl Rulebook {
    /// The built-in rules alone; nothing can be deployed.
    pub fn built_in() -> Self {
        Self::new(None)
    }

    /// The built-in rules and those in the home folder. A file that cannot be read makes evaluations unknown.
    pub fn open(home: &Path) -> Self {
        let rulebook = Self::new(Some(home.to_owned()));
        rulebook.shelf(&Tenant::local());
        rulebook
    }

    fn new(home: Option<PathBuf>) -> Self {
        let base = Ruleset::built_in().with_version(env!("CARGO_PKG_VERSION"));
        let inner = Inner { home, base, shelves: RwLock::default() };
        Self { inner: Arc::new(inner) }
    }

    /// The set in force for a tenant now. The first question about one reads its file.
    pub fn snapshot(&self, tenant: &Tenant) -> Arc<Ruleset> {
        match self.shelf(tenant) {
            Some(shelf) => Arc::clone(&shelf.current.load().ruleset),
            None => Arc::new(self.inner.base.clone()),
        }
    }

    /// How often a tenant's rules were changed since the start.
    pub fn changes(&self, tenant: &Tenant) -> u64 {
        self.shelf(tenant).map_or(0, |shelf| shelf.changes.load(Ordering::Relaxed))
    }

    /// How every rule file is that was read since the start, by tenant.
    pub fn status(&self) -> Vec<FileStatus> {
        let shelves = self.inner.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let one = |(tenant, shelf): (&Tenant, &Arc<Shelf>)| {
            let state = shelf.current.load();
            let content = state.content.as_ref().ok();
            let count = |of: fn(&Content) -> usize| content.map_or(0, of);
            let rules = count(|content| content.rules().count());
            FileStatus {
                tenant: tenant.as_str().to_owned(),
                state: if content.is_some() { "read" } else { "unreadable" },
                rules,
                enabled: count(|content| content.rules().filter(|(rule, _)| rule.enabled).count()),
                quarantined: count(|content| content.entries.len()) - rules,
                changes: shelf.changes.load(Ordering::Relaxed),
                loaded: state.loaded,
            }
        };
        let mut status: Vec<FileStatus> = shelves.iter().map(one).collect();
        status.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        status
    }

    /// A tenant's own rules.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn list(&self, tenant: &Tenant) -> Result<Listing, Error> {
        let Some(shelf) = self.shelf(tenant) else { return Ok(Listing::default()) };
        let _changing = shelf.change();
        let content = self.refresh(&shelf)?;
        let quarantined = content.entries.iter().filter_map(|entry| match entry {
            Entry::Damaged(_, quarantined, _) => Some(quarantined.clone()),
            Entry::Rule(..) => None,
        });
        Ok(Listing {
            rules: content.rules().map(|(rule, _)| rule.clone()).collect(),
            quarantined: quarantined.collect(),
        })
    }

    /// Puts a rule in force; with `replace` those of the same name are retired for it.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed then.
    pub fn deploy(&self, by: &By, rule: CustomRule, replace: bool) -> Result<Vec<Replaced>, Error> {
        let compiled = rule.compile().map_err(Error::Invalid)?;
        let shelf = self.writable(&by.tenant)?;
        let _changing = shelf.change();
        let before = self.refresh(&shelf)?;
        if before.rules().any(|(one, _)| one.id == rule.id) {
            return Err(Error::NotKept(io::Error::other("a rule has that id already")));
        }
        let taken = before.rules().find(|(one, _)| one.name == rule.name).map(|(one, _)| one.clone());
        if let (Some(taken), false) = (&taken, replace) {
            return Err(Error::Duplicate(Box::new(taken.clone())));
        }
        let mut after = before.clone();
        after.entries.retain(|entry| !matches!(entry, Entry::Rule(one, _) if one.name == rule.name));
        let mut details = Map::new();
        details.insert("severity".to_owned(), json!(rule.severity));
        if let Some(source) = &rule.source_moment_id {
            details.insert("sourceMomentId".to_owned(), json!(source));
        }
        let mut lines = Vec::new();
        if let Some(retired) = &taken {
            details.insert("replaces".to_owned(), json!([retired.id]));
            lines.push(line(by, Action::Delete, retired, Map::new()));
        }
        lines.push(line(by, Action::Deploy, &rule, details));
        after.entries.push(Entry::Rule(Box::new(rule), Arc::new(compiled)));
        check_limits(&after)?;
        self.put(&shelf, after, &lines)?;
        Ok(taken
            .map(|one| Replaced { id: one.id, eval_type: one.eval_type, severity: one.severity })
            .into_iter()
            .collect())
    }

    /// Removes a rule. False when there is none of that id.
    ///
    /// # Errors
    /// [`Error::Unreadable`] and [`Error::NotKept`]; nothing has changed then.
    pub fn delete(&self, by: &By, id: &str) -> Result<bool, Error> {
        let Some(shelf) = self.shelf(&by.tenant) else { return Ok(false) };
        let _changing = shelf.change();
        let before = self.refresh(&shelf)?;
        let Some(gone) = before.rules().find(|(rule, _)| rule.id == id).map(|(rule, _)| rule.clone()) else {
            return Ok(false);
        };
        let mut after = before.clone();
        after.entries.retain(|entry| !matches!(entry, Entry::Rule(rule, _) if rule.id == id));
        self.put(&shelf, after, &[line(by, Action::Delete, &gone, Map::new())])?;
        Ok(true)
    }

    /// Stops a rule or starts it again. The rule as it is then; nothing when there is none of that id.
    ///
    /// # Errors
    /// [`Error::Unreadable`] and [`Error::NotKept`]; nothing has changed then.
    pub fn toggle(&self, by: &By, id: &str, enabled: bool) -> Result<Option<CustomRule>, Error> {
        let Some(shelf) = self.shelf(&by.tenant) else { return Ok(None) };
        let _changing = shelf.change();
        let mut after = self.refresh(&shelf)?;
        let found = after.entries.iter_mut().find_map(|entry| match entry {
            Entry::Rule(rule, _) if rule.id == id => Some(rule),
            _ => None,
        });
        let Some(rule) = found else { return Ok(None) };
        if rule.enabled == enabled {
            return Ok(Some((**rule).clone()));
        }
        rule.enabled = enabled;
        rule.updated_at.clone_from(&by.at);
        let rule = (**rule).clone();
        let details = Map::from_iter([("enabled".to_owned(), Value::Bool(enabled))]);
        self.put(&shelf, after, &[line(by, Action::Toggle, &rule, details)])?;
        Ok(Some(rule))
    }

    /// The lines of the log about a tenant's rules, newest first, and how many there are.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn audit(&self, tenant: &Tenant, wanted: &Wanted) -> io::Result<(Vec<Line>, usize)> {
        match &self.inner.home {
            Some(home) => Audit::at(home).read(tenant, wanted),
            None => Ok((Vec::new(), 0)),
        }
    }

    fn writable(&self, tenant: &Tenant) -> Result<Arc<Shelf>, Error> {
        self.shelf(tenant).ok_or_else(|| Error::NotKept(io::Error::other("there is no home folder here")))
    }

    fn shelf(&self, tenant: &Tenant) -> Option<Arc<Shelf>> {
        let home = self.inner.home.as_ref()?;
        if let Some(shelf) = self.inner.shelves.read().unwrap_or_else(PoisonError::into_inner).get(tenant) {
            return Some(Arc::clone(shelf));
        }
        let mut shelves = self.inner.shelves.write().unwrap_or_else(PoisonError::into_inner);
        // A gateway may name any number of tenants; one that nobody asks about just now is read again when it is.
        if shelves.len() >= SHELVES_MAX && !shelves.contains_key(tenant) {
            let idle =
                shelves.iter().find(|(_, shelf)| Arc::strong_count(shelf) == 1).map(|(tenant, _)| tenant.clone());
            shelves.retain(|tenant, _| Some(tenant) != idle.as_ref());
        }
        let shelf = shelves.entry(tenant.clone()).or_insert_with(|| {
            let path = home.join(file::name(tenant));
            let state = self.read(&path);
            let current = ArcSwap::from_pointee(state);
            Arc::new(Shelf { path, current, changing: Mutex::new(()), changes: AtomicU64::new(0) })
        });
        Some(Arc::clone(shelf))
    }

    /// Reads a file as it is now.
    fn read(&self, path: &Path) -> State {
        let stamp = Stamp::of(path);
        match file::read(path) {
            Ok(content) => {
                let damaged = content.entries.len() - content.rules().count();
                if damaged > 0 {
                    tracing::warn!(path = %path.display(), damaged, "entries of the rule file cannot be read and do not fire");
                }
                let ruleset = Arc::new(self.ruleset(&content));
                State { content: Ok(content), stamp, ruleset, loaded: now() }
            }
            Err(fault) => {
                tracing::error!(path = %path.display(), %fault, "the rule file cannot be read; evaluations are unknown until it is repaired");
                State { ruleset: Arc::new(self.stuck(&fault)), content: Err(fault.to_string()), stamp, loaded: now() }
            }
        }
    }

    /// What the file holds, read again when another program has written it, or when it could not be read before.
    /// Called with the shelf's lock held.
    fn refresh(&self, shelf: &Shelf) -> Result<Content, Error> {
        let state = shelf.current.load_full();
        let state = if state.content.is_ok() && state.stamp == Stamp::of(&shelf.path) {
            state
        } else {
            let state = Arc::new(self.read(&shelf.path));
            shelf.current.store(Arc::clone(&state));
            state
        };
        state.content.clone().map_err(Error::Unreadable)
    }

    /// Disk before memory. Called with the shelf's lock held.
    fn put(&self, shelf: &Shelf, content: Content, lines: &[Line]) -> Result<(), Error> {
        let Some(home) = &self.inner.home else { return Ok(()) };
        let text = content.text().map_err(io::Error::from)?;
        let before = file::raw(&shelf.path)?;
        let kept = file::replace(&shelf.path, &text).and_then(|()| Audit::at(home).append(lines));
        if let Err(error) = kept {
            let is_written = file::raw(&shelf.path).is_ok_and(|now| now.as_deref() == Some(text.as_str()));
            if is_written && let Err(again) = file::restore(&shelf.path, before.as_deref()) {
                tracing::error!(path = %shelf.path.display(), error = %again, "the rule file could not be put back after a failed change");
            }
            return Err(Error::NotKept(error));
        }
        let ruleset = Arc::new(self.ruleset(&content));
        let stamp = Stamp::of(&shelf.path);
        shelf.current.store(Arc::new(State { content: Ok(content), stamp, ruleset, loaded: now() }));
        shelf.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn ruleset(&self, content: &Content) -> Ruleset {
        let firing = content.rules().filter(|(rule, _)| rule.enabled).map(|(rule, compiled)| {
            let compiled: Arc<dyn Rule> = compiled.clone();
            (rule.id.clone(), compiled)
        });
        let dormant = content.entries.iter().filter_map(|entry| match entry {
            Entry::Damaged(_, _, dormant) => dormant.clone(),
            Entry::Rule(..) => None,
        });
        self.inner.base.with_deployed(firing).with_dormant(dormant.collect())
    }

    /// The built-in rules, and one that says that nobody knows which others there are.
    fn stuck(&self, fault: &Fault) -> Ruleset {
        let why = format!("the rule file cannot be read: {fault}");
        let rule: Arc<dyn Rule> = Arc::new(BrokenRule::new("custom-rules.json", Bundle::Custom, true, why));
        self.inner.base.with_inline([rule])
    }
}

impl Shelf {
    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_limits(content: &Content) -> Result<(), Error> {
    let count = content.entries.len();
    if count > RULES_MAX {
        return Err(Error::Full(format!("{RULES_MAX} rules are deployed, and no more can be")));
    }
    let bytes = content.text().map_err(io::Error::from)?.len();
    if bytes > RULES_BYTES_MAX {
        let most = RULES_BYTES_MAX / 1024;
        return Err(Error::Full(format!("the rules would take {} KiB; at most {most}", bytes.div_ceil(1024))));
    }
    let compiled: usize = content.rules().map(|(_, compiled)| compiled.bytes()).sum();
    if compiled > COMPILED_BYTES_MAX {
        let most = COMPILED_BYTES_MAX >> 20;
        return Err(Error::Full(format!(
            "the rules would compile to {} MiB; at most {most}",
            compiled.div_ceil(1 << 20)
        )));
    }
    Ok(())
}

fn line(by: &By, action: Action, rule: &CustomRule, details: Map<String, Value>) -> Line {
    Line {
        ts: by.at.clone(),
        tenant_id: by.tenant.as_str().to_owned(),
        action,
        user: by.user.to_owned(),
        rule_id: rule.id.clone(),
        rule_name: rule.name.clone(),
        details,
    }
}
