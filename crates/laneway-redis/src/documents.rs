//! Documents: one hash with an order of names beside it, under the tag of the store.

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::limits::VALUE_BYTES_MAX;
use laneway_core::{Document, Documents, Refusal, Result, Timestamp};

use crate::failure::{Failure, Subject};
use crate::pack::{ABSENT, Arg, named};
use crate::reply::{Reply, corrupt};
use crate::store::RedisStore;

impl RedisStore {
    async fn document(&self, call: &Arg) -> Result<Reply> {
        let keys = self.names().documents();
        let answer = self.call(&self.scripts().documents, Subject::Store, &keys, call).await;
        answer.map_err(|failure| match failure {
            Failure::Missing(error) | Failure::Final(error) => error,
            Failure::Learn { .. } | Failure::Clock => corrupt("documents have no seats"),
        })
    }
}

fn read(mut from: Reply) -> Result<Document> {
    Ok(Document { name: from.text()?, version: from.number()?, bytes: from.bytes()? })
}

#[async_trait]
impl Documents for RedisStore {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        Document::check_name(name)?;
        self.document(&named! { get: name }).await?.optional_list()?.map(read).transpose()
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        Document::check_name(name)?;
        Refusal::check_max("document bytes", bytes.len(), VALUE_BYTES_MAX)?;
        let call = named! { put: name, expect: expect.unwrap_or(0), bytes: bytes };
        self.document(&call).await?.number()
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        Document::check_name(name)?;
        let call = named! { put: name, expect: expect, bytes: ABSENT };
        self.document(&call).await?;
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.document(&named! { list: prefix }).await?.list()?.each(|rows| read(rows.list()?))
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        self.document(&named! { clock: true }).await?.timestamp().map(Some)
    }
}
