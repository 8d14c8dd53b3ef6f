//! Who calls, and what it may do.

use iris_core::contract::{Error, Scope, tool};
use iris_core::model::Tenant;

use crate::door::Holder;

/// Who calls, as the door established it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose data the call sees.
    pub tenant: Tenant,
    scopes: Vec<Scope>,
    /// The most text of a reply that is read by a model.
    reply_bytes_max: Option<usize>,
    may_set_tenant: bool,
}

impl Caller {
    /// The caller of an installation without tenants, at a door that asks for no key: it may do everything.
    pub fn local() -> Self {
        Self { tenant: Tenant::local(), scopes: Scope::ALL.to_vec(), reply_bytes_max: None, may_set_tenant: false }
    }

    /// Whoever holds the folder itself, for one of its tenants: it may do everything.
    pub fn owner(tenant: Tenant) -> Self {
        Self { tenant, scopes: Scope::ALL.to_vec(), reply_bytes_max: None, may_set_tenant: false }
    }

    /// The same, allowed to look and nothing else.
    pub fn onlooker() -> Self {
        Self { tenant: Tenant::local(), scopes: vec![Scope::Read], reply_bytes_max: None, may_set_tenant: false }
    }

    /// The same, of whom it is known that a model reads the replies: it takes at most so many bytes of text at once; 0
    /// for no such bound.
    pub fn with_model(mut self, reply_bytes_max: usize) -> Self {
        self.reply_bytes_max = Some(reply_bytes_max).filter(|most| *most > 0);
        self
    }

    /// The bytes of text up to which a reply is whole; `otherwise` where no model reads it.
    pub(super) fn reply_bytes(&self, otherwise: usize) -> usize {
        self.reply_bytes_max.unwrap_or(otherwise).min(otherwise)
    }

    /// Whether a reply must not be longer than that, even if it has to have fewer rows.
    pub(super) fn is_model(&self) -> bool {
        self.reply_bytes_max.is_some()
    }

    /// Whether what it sends may be another tenant's, and say so.
    pub fn may_set_tenant(&self) -> bool {
        self.may_set_tenant
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
        match tool(name) {
            Some(tool) => self.check(tool.name, tool.scope),
            None => Ok(()),
        }
    }
}

impl From<&Holder> for Caller {
    fn from(holder: &Holder) -> Self {
        Self {
            tenant: holder.tenant.clone(),
            scopes: holder.scopes.clone(),
            reply_bytes_max: None,
            may_set_tenant: holder.may_set_tenant,
        }
    }
}
