//! The shape of a JSON text, before its content is checked.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON text; only an object is useful.
pub(crate) enum Shape<Object> {
    Object(Object),
    Array,
    Other,
}

/// An object that is read key by key.
pub(crate) trait FromKeys: Sized {
    /// Reads it.
    fn from_keys<'de, A: MapAccess<'de>>(keys: A) -> Result<Self, A::Error>;
}

impl<'de, Object: FromKeys> Deserialize<'de> for Shape<Object> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape<Object>, D::Error> {
        deserializer.deserialize_any(ShapeVisitor(PhantomData))
    }
}

struct ShapeVisitor<Object>(PhantomData<Object>);

impl<'de, Object: FromKeys> Visitor<'de> for ShapeVisitor<Object> {
    type Value = Shape<Object>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Object::from_keys(map).map(Shape::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<Value>()?.is_some() {}
        Ok(Shape::Array)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }
}

/// The first key that stands twice in one object. Plain JSON readers silently take the last of the two.
#[derive(Debug, Default)]
pub(crate) struct RepeatedKey(Option<String>);

impl RepeatedKey {
    /// The key, if there is one.
    pub(crate) fn key(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Keeps a key that was there before.
    pub(crate) fn note(&mut self, key: &str) {
        self.0.get_or_insert_with(|| key.to_owned());
    }
}

/// Reads any value and notes a key that stands twice in any object of it.
pub(crate) struct ReadValue<'read>(pub(crate) &'read mut RepeatedKey);

impl<'de> DeserializeSeed<'de> for ReadValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = keys.next_key::<String>()? {
            let value = keys.next_value_seed(ReadValue(self.0))?;
            match object.entry(key) {
                serde_json::map::Entry::Vacant(free) => {
                    free.insert(value);
                }
                serde_json::map::Entry::Occupied(taken) => self.0.note(taken.key()),
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(ReadValue(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}
