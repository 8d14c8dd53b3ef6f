//! Which traces a purge is about.

use duckdb::ToSql;
use iris_core::model::{Tenant, Timestamp, TraceId};

use super::reader::Reader;
use super::spans::{micros, trace_id};
use super::{Error, Store};

impl Store {
    /// Traces of a tenant of which the last row came before then, at most `max`: those of an agent, or all, those
    /// included that are spans and no trace. In no order.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn purgeable(
        &self,
        tenant: &Tenant,
        agent_name: Option<&str>,
        before: Timestamp,
        max: u32,
    ) -> Result<Vec<TraceId>, Error> {
        let (tenant, agent_name) = (tenant.clone(), agent_name.map(str::to_owned));
        let read = move |reader: &Reader<'_>| purgeable(reader, &tenant, agent_name.as_deref(), before, max);
        self.read(read).await
    }

    /// Every tenant that has anything here.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let sql =
            "SELECT tenant FROM traces UNION SELECT tenant FROM spans UNION SELECT tenant FROM evaluations ORDER BY 1";
        let name =
            |row: &duckdb::Row<'_>| row.get::<_, String>(0).map(|name| Tenant::new(&name)).map_err(Error::engine);
        self.read(move |reader| reader.rows(sql, &[], name)).await
    }
}

fn purgeable(
    reader: &Reader<'_>,
    tenant: &Tenant,
    agent_name: Option<&str>,
    before: Timestamp,
    max: u32,
) -> Result<Vec<TraceId>, Error> {
    let (tenant, before) = (tenant.as_str(), micros(before));
    let id = |row: &duckdb::Row<'_>| {
        let id = row.get::<_, Vec<u8>>(0).map_err(Error::engine)?;
        trace_id(&id).map_err(|why| Error::Unreadable { table: "traces", why })
    };
    if let Some(agent_name) = agent_name {
        let sql = "SELECT trace_id FROM traces WHERE tenant = ? AND agent_name = ? GROUP BY trace_id \
                   HAVING max(stored_at) < ? LIMIT ?";
        return reader.readable(sql, &[&tenant as &dyn ToSql, &agent_name, &before, &max], id);
    }
    let sql = "SELECT trace_id FROM (SELECT trace_id, stored_at AS came FROM traces WHERE tenant = ? \
               UNION ALL SELECT trace_id, received FROM spans WHERE tenant = ?) GROUP BY trace_id \
               HAVING max(came) < ? LIMIT ?";
    reader.readable(sql, &[&tenant as &dyn ToSql, &tenant, &before, &max], id)
}
