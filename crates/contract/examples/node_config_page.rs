//! Prints docs/node-config.md.

#![allow(clippy::print_stdout, reason = "a program that prints a page")]

use bringup_contract::node_config::{INTRODUCTION, PAGE};

fn main() {
    print!("{INTRODUCTION}{PAGE}");
}
