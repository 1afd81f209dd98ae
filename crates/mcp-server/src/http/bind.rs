//! Which addresses a server listens on.
//!
//! Clients write `localhost`, which means either family depending on the machine, so a server has both loopback
//! addresses on one port wherever the machine has both.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use super::whose::{self, Teller};

/// The port that clients are configured with unless somebody says otherwise.
pub const DEFAULT_PORT: u16 = 8741;

/// How often a free port is looked for that both families have.
const ATTEMPTS: u32 = 16;

/// Which port to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// This one and no other; 0 is any that is free.
    Exactly(u16),
    /// This one, or else any that is free.
    Preferably(u16),
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The addresses. One that the machine does not have is left out, as long as there is another.
    pub addresses: Vec<IpAddr>,
    /// The port, the same on each.
    pub port: Port,
}

impl Listen {
    /// Both loopback addresses.
    pub const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
}

/// Says why a server could not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program has the port.
    #[error("port {port} of {address} is in use by another program")]
    InUse {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// The operating system refused.
    #[error("cannot listen on {address}")]
    Refused {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// There was no address to listen on.
    #[error("this machine has none of the addresses that were asked for")]
    NoAddress,
}

/// Sockets that listen, before anybody serves them.
#[derive(Debug)]
pub struct Bound {
    listeners: Vec<TcpListener>,
    port: u16,
    address: IpAddr,
}

impl Bound {
    /// Listens.
    ///
    /// # Errors
    /// [`BindError`], and then nothing listens.
    pub fn new(listen: &Listen) -> Result<Self, BindError> {
        let wanted = match listen.port {
            Port::Exactly(port) | Port::Preferably(port) => port,
        };
        match bind(&listen.addresses, wanted) {
            Err(BindError::InUse { .. } | BindError::Refused { .. }) if matches!(listen.port, Port::Preferably(_)) => {
                bind(&listen.addresses, 0)
            }
            done => done,
        }
    }

    /// Takes over sockets that listen already, on one port of loopback addresses.
    ///
    /// # Errors
    /// [`BindError`] where there is none, or the operating system does not say where they listen.
    pub fn of(listeners: Vec<TcpListener>) -> Result<Self, BindError> {
        let first = listeners.first().ok_or(BindError::NoAddress)?;
        let refused = |source| BindError::Refused { address: (Ipv4Addr::LOCALHOST, 0).into(), source };
        let at = first.local_addr().map_err(refused)?;
        for listener in &listeners {
            listener.set_nonblocking(true).map_err(refused)?;
        }
        Ok(Self { port: at.port(), address: at.ip(), listeners })
    }

    /// The same sockets once more.
    pub(super) fn again(&self) -> io::Result<Vec<TcpListener>> {
        self.listeners.iter().map(TcpListener::try_clone).collect()
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the server is reached: `http://127.0.0.1:8741`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", SocketAddr::new(self.address, self.port))
    }

    /// Who tells for each listener whose connections are, where the system can.
    pub(super) fn tellers(&self) -> Option<Vec<Teller>> {
        whose::tellers(&self.listeners)
    }

    pub(super) fn into_listeners(self) -> Vec<TcpListener> {
        self.listeners
    }
}

fn bind(addresses: &[IpAddr], port: u16) -> Result<Bound, BindError> {
    let mut last = BindError::NoAddress;
    for _ in 0..ATTEMPTS {
        match bind_once(addresses, port) {
            // Any port will do, and the one that the first family gave was taken in the other.
            Err(BindError::InUse { address, port: taken }) if port == 0 => {
                last = BindError::InUse { address, port: taken };
            }
            done => return done,
        }
    }
    Err(last)
}

fn bind_once(addresses: &[IpAddr], port: u16) -> Result<Bound, BindError> {
    let (mut listeners, mut port, mut first) = (Vec::new(), port, None);
    for address in addresses {
        let at = SocketAddr::new(*address, port);
        let listener = match TcpListener::bind(at) {
            Ok(listener) => listener,
            // Families are absent in containers and on machines without IPv6.
            Err(error) if is_absent(&error) => continue,
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                return Err(BindError::InUse { address: *address, port });
            }
            Err(source) => return Err(BindError::Refused { address: at, source }),
        };
        let refused = |source| BindError::Refused { address: at, source };
        port = listener.local_addr().map_err(refused)?.port();
        listener.set_nonblocking(true).map_err(refused)?;
        first = first.or(Some(*address));
        listeners.push(listener);
    }
    let address = first.ok_or(BindError::NoAddress)?;
    Ok(Bound { listeners, port, address })
}

fn is_absent(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let absent = [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT];
    error.raw_os_error().is_some_and(|code| absent.iter().any(|errno| errno.raw_os_error() == code))
}

#[cfg(test)]
mod tests;
