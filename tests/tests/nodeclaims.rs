//! NodeClaims end to end: a real API server with Karpenter's definitions, a simulated Azure, and
//! the controller. Each test carries the number that it has in the list of what is asked for.

#![allow(clippy::print_stdout, reason = "what a test saw helps when it fails")]

mod nodeclaims {
    mod attacks;
    mod common;
    mod extremes;
    mod inputs;
    mod limits;
    mod modes;
    mod races;
    mod verdicts;
    mod writes;
}
