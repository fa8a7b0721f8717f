//! NodeClaims end to end: a real API server with Karpenter's definitions, a simulated Azure, and the
//! controller. Each numbered test has its number from the list of requirements.

#![allow(clippy::print_stdout, reason = "what a test saw helps when it fails")]

#[path = "generators/mod.rs"]
#[allow(dead_code, reason = "each test program uses its own part")]
mod generators;
mod nodeclaims {
    mod attacks;
    mod common;
    mod extremes;
    mod inputs;
    mod limits;
    mod modes;
    mod objects;
    mod panics;
    mod races;
    mod verdicts;
    mod writes;
}
