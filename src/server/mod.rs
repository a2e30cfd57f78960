//! What a service stands on.
