//! What a JSON text is, before anything in it is judged.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON value, of which only an object is of use.
pub(crate) enum Shape<Object> {
    Object(Object),
    Array,
    Null,
    Other,
}

/// An object that is read key by key.
pub(crate) trait FromKeys: Sized {
    /// Reads it.
    fn from_keys<'de, A: MapAccess<'de>>(keys: A) -> Result<Self, A::Error>;
}

/// An object whose keys may stand in it twice, which plain JSON readers keep to themselves.
pub(crate) struct Keyed {
    pub(crate) object: Map<String, Value>,
    pub(crate) has_key_twice: bool,
}

impl FromKeys for Keyed {
    fn from_keys<'de, A: MapAccess<'de>>(mut keys: A) -> Result<Keyed, A::Error> {
        let mut object = Map::new();
        let mut has_key_twice = false;
        while let Some((key, value)) = keys.next_entry()? {
            has_key_twice |= object.insert(key, value).is_some();
        }
        Ok(Keyed {
            object,
            has_key_twice,
        })
    }
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
        Ok(Shape::Null)
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
