//! CloudEvents 1.0, as they are sent in JSON.

use std::collections::BTreeMap;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::payload::Json;

/// A CloudEvent. Its `partitionkey`, else its `subject`, is the key; `source` and `id` together are the `dedup_id`; all other
/// attributes become headers named `ce-…`.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CloudEvent {
    /// Must be `1.0`.
    pub specversion: String,
    /// Names it at its source.
    pub id: String,
    /// Where it happened.
    pub source: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about: its key, unless it has a `partitionkey`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Its payload; any JSON, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Its payload in base64, when it is no JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_base64: Option<String>,
    /// All other attributes, such as `partitionkey`, `time` and `dataschema`: texts, numbers and truths.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Value>))]
    pub attributes: BTreeMap<String, serde_json::Value>,
}

// By hand: serde cannot flatten a struct that carries raw JSON.
impl<'de> Deserialize<'de> for CloudEvent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Attributes)
    }
}

struct Attributes;

impl<'de> Visitor<'de> for Attributes {
    type Value = CloudEvent;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CloudEvent, A::Error> {
        let mut event = CloudEvent::default();
        let (mut version, mut id, mut source, mut kind) = (None, None, None, None);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "specversion" => version = Some(map.next_value()?),
                "id" => id = Some(map.next_value()?),
                "source" => source = Some(map.next_value()?),
                "type" => kind = Some(map.next_value()?),
                "subject" => event.subject = map.next_value()?,
                "data" => event.data = Some(map.next_value()?),
                "data_base64" => event.data_base64 = map.next_value()?,
                _ => drop(event.attributes.insert(name, map.next_value()?)),
            }
        }
        event.specversion = version.ok_or_else(|| de::Error::missing_field("specversion"))?;
        event.id = id.ok_or_else(|| de::Error::missing_field("id"))?;
        event.source = source.ok_or_else(|| de::Error::missing_field("source"))?;
        event.kind = kind.ok_or_else(|| de::Error::missing_field("type"))?;
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_event_comes_back_as_it_was() {
        let text = r#"{"specversion":"1.0","id":"7","source":"/shop","type":"paid","subject":"ann","data":{"a" : 1.0},"n":3,"partitionkey":"p"}"#;
        let event: CloudEvent = serde_json::from_str(text).unwrap();
        assert_eq!(
            (event.data.as_ref().unwrap().get(), &event.attributes["n"]),
            (r#"{"a" : 1.0}"#, &3.into())
        );
        let absent = serde_json::from_str::<CloudEvent>(r#"{"specversion":"1.0","id":"7","type":"paid"}"#);
        assert!(absent.unwrap_err().to_string().starts_with("missing field `source`"));
    }
}
