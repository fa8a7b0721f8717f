//! The binary `bringup-node`; everything is in the library.

fn main() -> std::process::ExitCode {
    bringup_node::main()
}
