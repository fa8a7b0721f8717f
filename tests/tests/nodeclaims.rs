//! NodeClaims end to end: a real API server with Karpenter's definitions, a simulated Azure, and
//! the controller. Each test carries the number that it has in the list of what is asked for.

mod nodeclaims {
    mod verdicts;
}
