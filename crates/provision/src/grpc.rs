//! The gRPC doors of flex.
//!
//! Two clients connect: Karpenter's provider calls [`v1::provider_server::Provider`], aks-flex
//! calls the services in [`plugin`]. Both come through a [`Door`](listen::Door): a unix socket, or
//! TLS on which both sides show a certificate. Requests are refused in the form of [`refusal`], so
//! that no client has to search a text for what went wrong.

mod generated;
pub mod listen;
pub mod plugin;
pub mod refusal;

pub use generated::bringup::flex::v1;
