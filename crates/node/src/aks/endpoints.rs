//! The addresses of the platform: name servers, metadata service, wire server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::host::linux::store;
use crate::host::paths::Root;

/// The metadata service of every VM.
const IMDS: &str = "169.254.169.254:80";
/// The host's side of every VM: goal states, and what the guest agent puts there.
const WIRE_SERVER: [&str; 2] = ["168.63.129.16:80", "168.63.129.16:32526"];
/// The system's resolver does not query more name servers either.
const NAME_SERVERS: usize = 3;

/// The addresses of the platform. Under `--root`, only configured addresses are contacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) name_servers: Vec<SocketAddr>,
    pub(crate) imds: Option<SocketAddr>,
    pub(crate) wire_server: Vec<SocketAddr>,
}

impl Endpoints {
    /// The addresses of the machine, or the addresses in the section `[endpoints]` of the settings.
    pub(crate) fn read(file: &BTreeMap<String, String>, root: &Root) -> Result<Self, String> {
        let set = |name: &str| -> Result<Option<Vec<SocketAddr>>, String> {
            let Some(text) = file.get(&format!("endpoints.{name}")) else { return Ok(None) };
            let address = |part: &str| part.trim().parse().map_err(|_| text.clone());
            text.split(',').map(address).collect::<Result<_, _>>().map(Some)
        };
        let own = |addresses: &[&str]| -> Vec<SocketAddr> {
            let built_in = addresses.iter().filter_map(|address| address.parse().ok());
            if root.directory().is_none() { built_in.collect() } else { Vec::new() }
        };
        let listed = || {
            let text = store::head(&root.resolv_conf(), 16 * 1024).unwrap_or_default();
            if root.directory().is_none() { name_servers(&text) } else { Vec::new() }
        };
        Ok(Self {
            name_servers: set("dns")?.unwrap_or_else(listed),
            imds: set("imds")?.unwrap_or_else(|| own(&[IMDS])).first().copied(),
            wire_server: set("wireserver")?.unwrap_or_else(|| own(&WIRE_SERVER)),
        })
    }
}

/// The name servers in a resolv.conf.
fn name_servers(text: &str) -> Vec<SocketAddr> {
    let words = text.lines().map(|line| line.split_whitespace());
    words
        .filter_map(|mut words| {
            let address = (words.next()? == "nameserver").then(|| words.next()).flatten()?;
            let address: IpAddr = address.split('%').next()?.parse().ok()?;
            Some(SocketAddr::new(address, 53))
        })
        .take(NAME_SERVERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read_as_the_system_reads_them() {
        let text =
            "# x\nsearch a.b\nnameserver 10.0.0.4\n nameserver\tfe80::1%eth0\nnameserver x\n";
        let found: Vec<String> = name_servers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.0.0.4:53", "[fe80::1]:53"]);
    }

    #[test]
    fn under_a_root_only_what_is_set_is_asked() {
        let root = Root::new(Some("/nowhere".into()));
        let none = Endpoints::read(&BTreeMap::new(), &root);
        assert_eq!(none, Ok(Endpoints::default()));
        let set = [("endpoints.imds".to_owned(), "127.0.0.1:8080".to_owned())].into();
        let set = Endpoints::read(&set, &root).unwrap();
        assert_eq!(set.imds.unwrap().port(), 8080);
        let wrong = [("endpoints.dns".to_owned(), "somewhere".to_owned())].into();
        assert!(Endpoints::read(&wrong, &root).is_err());
        assert_eq!(
            Endpoints::read(&BTreeMap::new(), &Root::new(None)).unwrap().wire_server.len(),
            2
        );
    }
}
