//! Who calls, and what it may do.

use iris_core::contract::{Error, Scope, TOOLS};
use iris_core::model::Tenant;

use crate::door::Holder;

/// Who calls, as the door established it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose data the call sees.
    pub tenant: Tenant,
    scopes: Vec<Scope>,
}

impl Caller {
    /// The caller of an installation without tenants, at a door that asks for no key: it may do everything.
    pub fn local() -> Self {
        Self { tenant: Tenant::local(), scopes: Scope::ALL.to_vec() }
    }

    /// The same, allowed to look and nothing else.
    pub fn onlooker() -> Self {
        Self { tenant: Tenant::local(), scopes: vec![Scope::Read] }
    }

    /// Whether it may do such a thing.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Refuses what the caller may not do; `what` names it.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` with the scope that is missing.
    pub(super) fn check(&self, what: &str, scope: Scope) -> Result<(), Error> {
        if self.may(scope) { Ok(()) } else { Err(Error::out_of_scope(what, scope)) }
    }

    /// Refuses a tool that the caller may not call. A tool that does not exist is refused elsewhere.
    pub(super) fn check_tool(&self, name: &str) -> Result<(), Error> {
        match TOOLS.iter().find(|tool| tool.name == name) {
            Some(tool) => self.check(tool.name, tool.scope),
            None => Ok(()),
        }
    }
}

impl From<&Holder> for Caller {
    fn from(holder: &Holder) -> Self {
        Self { tenant: holder.tenant.clone(), scopes: holder.scopes.clone() }
    }
}
