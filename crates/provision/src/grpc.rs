//! The gRPC doors of flex.
//!
//! Two clients come in: Karpenter's provider asks [`v1::provider_server::Provider`], aks-flex asks
//! the services in [`plugin`]. Both come through a [`Door`](listen::Door): a unix socket, or TLS on
//! which both sides show a certificate. What is refused is refused in the words of
//! [`refusal`], so that nobody has to search a text for what went wrong.

mod generated;
pub mod listen;
pub mod plugin;
pub mod refusal;

pub use generated::bringup::flex::v1;
