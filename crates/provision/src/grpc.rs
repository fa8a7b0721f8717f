//! The gRPC services of flex.
//!
//! Two clients connect: Karpenter's provider calls [`v1::provider_server::Provider`], aks-flex calls the
//! services in [`plugin`]. Both connect to a [`GrpcListener`](listen::GrpcListener): a unix socket, or TLS
//! where both sides present a certificate. Refusals have the form of [`refusal`], so that no client has to
//! parse a message.

mod generated;
pub mod listen;
pub mod plugin;
pub mod refusal;

pub use generated::bringup::flex::v1;
