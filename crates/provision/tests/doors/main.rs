//! Tests of both services with clients over real sockets.

mod certificates;
mod clients;
mod items;
mod memory;
mod plugin;
mod ports;
mod sockets;
mod stand_in;
mod transport;
mod wire;
