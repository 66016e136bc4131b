//! The place.
