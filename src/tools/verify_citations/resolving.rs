//! Which sources are read, and within which limits.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use iris_core::citation::{Citation, Kind, doi_address};
use iris_core::contract::{VerifyCitationsArgs, Warning};

use crate::fetch::{Failure, Limits, Page};
use crate::tools::judging::{Bound, Judging};

/// Milliseconds that one source may take when the call does not say.
const SOURCE_MS: u64 = 10_000;
/// Bytes of one source when the call does not say.
const SOURCE_BYTES: u64 = 5 * 1024 * 1024;
/// Sources that are read at a time.
const AT_ONCE: usize = 4;

/// What became of a citation's source.
#[derive(Debug, Clone)]
pub(super) enum Resolved {
    Read(Arc<Page>),
    Skipped(Failure),
    Failed(Failure),
}

/// A source on its way in, by its address.
type Reading<'a> = Pin<Box<dyn Future<Output = (&'a str, Result<Arc<Page>, Failure>)> + Send + 'a>>;

impl Judging {
    /// The source of each citation; one that is cited twice is read once.
    pub(super) async fn resolve(
        &self,
        citations: &[Citation],
        most: usize,
        args: &VerifyCitationsArgs,
        warnings: &mut Vec<Warning>,
    ) -> Vec<Resolved> {
        let may_fetch = self.citations.may_fetch(args.allow_fetch);
        if args.allow_fetch == Some(true) && !may_fetch {
            warnings.push(Warning::narrowed("allow_fetch", "citations.fetch", "nothing fetched"));
        }
        let limits = self.limits(args, warnings);
        let plans: Vec<Result<String, Failure>> =
            citations.iter().enumerate().map(|(at, citation)| plan(citation, at < most, may_fetch)).collect();
        let mut addresses: Vec<&str> = plans.iter().flatten().map(String::as_str).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut reading: Vec<Reading<'_>> = Vec::with_capacity(addresses.len());
        for address in addresses {
            let limits = limits.as_ref();
            reading.push(Box::pin(async move {
                let read = match limits {
                    Some(limits) => self.fetcher.fetch(address, limits).await,
                    None => Err(Failure::new("not_allowed_domain", "no host is left that may be fetched")),
                };
                (address, read.map(Arc::new))
            }));
        }
        let read: HashMap<&str, _> = futures_util::stream::iter(reading).buffered(AT_ONCE).collect().await;
        let of = |address: &String| match read.get(address.as_str()) {
            Some(Ok(page)) => Resolved::Read(Arc::clone(page)),
            Some(Err(failure)) => Resolved::Failed(failure.clone()),
            None => Resolved::Failed(Failure::new("unknown", "it was not read")),
        };
        plans.iter().map(|plan| plan.as_ref().map_or_else(|why| Resolved::Skipped(why.clone()), of)).collect()
    }

    /// Within which every source is read; none when no host is left that may be.
    fn limits(&self, args: &VerifyCitationsArgs, warnings: &mut Vec<Warning>) -> Option<Limits> {
        let time = Bound {
            field: "per_source_timeout_ms",
            setting: "citations.source_ms_max",
            unit: "ms",
            most: self.citations.source_ms_max,
        };
        let bytes = Bound {
            field: "per_source_max_bytes",
            setting: "citations.source_bytes_max",
            unit: "bytes",
            most: self.citations.source_bytes_max,
        };
        let timeout = Duration::from_millis(time.of(args.per_source_timeout_ms, SOURCE_MS, warnings));
        let bytes_max = bytes.of(args.per_source_max_bytes, SOURCE_BYTES, warnings);
        let (hosts, narrowed) = self.citations.hosts(args.domain_allowlist.as_deref());
        if narrowed {
            let left = hosts.as_ref().map_or_else(|| "no host".to_owned(), |hosts| hosts.join(", "));
            warnings.push(Warning::narrowed("domain_allowlist", "citations.allow_domains", left));
        }
        hosts.map(|hosts| Limits { timeout, bytes_max, hosts })
    }
}

/// Where the source is, or why it is not looked for.
fn plan(citation: &Citation, is_among_first: bool, may_fetch: bool) -> Result<String, Failure> {
    if !is_among_first {
        return Err(Failure::new("max_citations", "more citations than this call verifies"));
    }
    match citation.kind {
        Kind::Numbered | Kind::AuthorYear => {
            Err(Failure::new("unresolvable_kind", "a citation of this kind has no address"))
        }
        Kind::Url | Kind::Doi if !may_fetch => {
            Err(Failure::new("fetch_disabled", "sources are not fetched; allow_fetch or the configuration permits it"))
        }
        Kind::Url => Ok(citation.identifier.clone()),
        Kind::Doi => Ok(doi_address(&citation.identifier)),
    }
}
