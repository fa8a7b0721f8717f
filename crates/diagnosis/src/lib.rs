//! Evidence in, diagnosis out.
