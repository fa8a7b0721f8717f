use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A unix socket, for processes of the same user: `unix:///PATH`.
    Unix(PathBuf),
    /// A port, for clients with a certificate: `HOST:PORT`, where port 0 is any free one.
    Tcp {
        /// A host name or an IP address; an IPv6 address without its brackets.
        host: String,
        /// The port number.
        port: u16,
    },
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address: {what}")]
pub struct AddressError {
    text: String,
    what: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |what| AddressError { text: text.to_owned(), what };
        if let Some(rest) = text.strip_prefix("unix:") {
            return match rest.strip_prefix("//").filter(|path| path.starts_with('/')) {
                Some("/") => Err(wrong("the path of the socket is missing")),
                Some(path) => Ok(Self::Unix(path.into())),
                None => Err(wrong("a unix socket is written with a whole path, as unix:///PATH")),
            };
        }
        let shape = "it must be unix:///PATH or HOST:PORT";
        if text.contains('/') {
            return Err(wrong(shape));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong(shape))?;
        let port = port.parse().map_err(|_| wrong("the port must be a number from 0 to 65535"))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(wrong("an address of IPv6 is written in brackets, as [::]:8443"));
        }
        match bare.unwrap_or(host) {
            "" => Err(wrong("the host is missing; 0.0.0.0 and [::] stand for all addresses")),
            host => Ok(Self::Tcp { host: host.to_owned(), port }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix://{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_alike() {
        let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
        for (text, address) in [
            ("unix:///run/bringup/flex.sock", Address::Unix("/run/bringup/flex.sock".into())),
            ("0.0.0.0:8443", tcp("0.0.0.0", 8443)),
            ("bringup.example:1", tcp("bringup.example", 1)),
            ("[::]:8443", tcp("::", 8443)),
        ] {
            assert_eq!(text.parse(), Ok(address.clone()));
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, why) in [
            ("", "HOST:PORT"),
            ("bringup", "HOST:PORT"),
            ("https://bringup:8443", "HOST:PORT"),
            ("unix:flex.sock", "unix:///PATH"),
            ("unix://flex.sock", "unix:///PATH"),
            ("unix:///", "path"),
            ("bringup:", "port"),
            ("bringup:65536", "port"),
            ("bringup:https", "port"),
            (":8443", "host"),
            ("[]:8443", "host"),
            ("::1:8443", "brackets"),
        ] {
            let message = text.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")) && message.contains(why), "{message}");
        }
    }
}
