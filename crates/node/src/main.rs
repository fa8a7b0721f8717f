//! The binary `bringup-node`; all code is in the library.

fn main() -> std::process::ExitCode {
    bringup_node::main()
}
