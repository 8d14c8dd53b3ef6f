//! `query_sql`: a caller's own SELECT, where the operator allows it.

use iris_core::contract::{Error, QuerySqlArgs, QuerySqlReply, SqlColumn, SqlTable};
use serde_json::Value;

use super::bounds::Measure;
use super::{App, Caller, to_value, untrusted};
use crate::store::{self, SQL_FUNCTIONS, SQL_VIEWS};

/// Rows unless more are wanted.
const ROWS: usize = 100;

/// Characters of all values together.
const CHARS_MAX: usize = 1024 * 1024;

impl App {
    pub(super) async fn query_sql(&self, args: QuerySqlArgs, caller: &Caller) -> Result<Value, Error> {
        let Some(text) = args.sql else { return self.described(caller).await };
        let limit = args.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(ROWS);
        let bytes_max = caller.reply_bytes(CHARS_MAX);
        let found = self.backend()?.store.sql(&caller.tenant, &text, limit, bytes_max).await;
        let mut found = found.map_err(|error| self.not_queried(&error))?;
        let (all, mut bytes) = (found.rows.len(), 0);
        let fitting = found.rows.iter().take_while(|row| {
            bytes += row.iter().map(Measure::whole).sum::<usize>();
            bytes <= bytes_max
        });
        let kept = fitting.count().max(1);
        found.rows.truncate(kept);
        let mut truncated = Vec::new();
        if found.cut > 0 {
            truncated.push(format!("rows: {} values cut; ask for fewer columns or rows", found.cut));
        }
        if all > kept {
            truncated.push(format!("rows[{kept}..{all}]: left out for their size"));
        }
        let reply = QuerySqlReply {
            untrusted: (!found.rows.is_empty()).then(|| untrusted(&["rows"])),
            columns: columns(found.columns),
            more: found.more || all > kept,
            rows: found.rows,
            truncated,
            ..QuerySqlReply::default()
        };
        to_value(self, &reply)
    }

    /// What can be asked.
    async fn described(&self, caller: &Caller) -> Result<Value, Error> {
        let found =
            self.backend()?.store.sql_columns(&caller.tenant).await.map_err(|error| self.not_queried(&error))?;
        let table = |(view, of): (&store::View, Vec<(String, String)>)| SqlTable {
            name: view.name.to_owned(),
            about: view.about.to_owned(),
            columns: columns(of),
        };
        let reply = QuerySqlReply {
            tables: SQL_VIEWS.iter().zip(found).map(table).collect(),
            functions: SQL_FUNCTIONS.iter().map(|name| (*name).to_owned()).collect(),
            ..QuerySqlReply::default()
        };
        to_value(self, &reply)
    }

    fn not_queried(&self, error: &store::Error) -> Error {
        match error {
            store::Error::Statement(why) => Error::invalid_argument("sql", why),
            other => self.failed(other),
        }
    }
}

fn columns(of: Vec<(String, String)>) -> Vec<SqlColumn> {
    of.into_iter().map(|(name, kind)| SqlColumn { name, kind }).collect()
}
