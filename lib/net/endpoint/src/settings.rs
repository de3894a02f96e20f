//! The text of options.

use core::net::Ipv4Addr;

/// An address with the length of its network's prefix, and the router to other networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the network, 1 to 32.
    pub prefix: u8,
    /// The router, if there is one.
    pub router: Option<Ipv4Addr>,
}

/// What can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The address; without one it is asked for by DHCP.
    pub fixed: Option<Fixed>,
    /// The port at which what is sent is given back.
    pub echo: Option<u16>,
}

impl Settings {
    /// Reads `text`, words with blanks between them: `echo=PORT`, `address=A.B.C.D/N` or
    /// `address=A.B.C.D/N,ROUTER`. Of a word that comes twice the last one holds.
    ///
    /// # Errors
    /// The word that is not understood.
    pub fn parse(text: &str) -> Result<Self, &str> {
        let mut settings = Settings::default();
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or(word)?;
            match name {
                "echo" => settings.echo = Some(port(value).ok_or(word)?),
                "address" => settings.fixed = Some(fixed(value).ok_or(word)?),
                _ => return Err(word),
            }
        }
        Ok(settings)
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

fn fixed(text: &str) -> Option<Fixed> {
    let (own, router) = match text.split_once(',') {
        Some((own, router)) => (own, Some(host(router)?)),
        None => (text, None),
    };
    let (address, prefix) = own.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|bits| (1..=32).contains(bits))?;
    Some(Fixed {
        address: host(address)?,
        prefix,
        router,
    })
}

/// An address that one host may have.
fn host(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok().filter(is_host)
}

/// Whether it may be the address of one host.
pub fn is_host(address: &Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_broadcast() || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood() {
        assert_eq!(Settings::parse(""), Ok(Settings::default()));
        let settings = Settings::parse(" echo=7  address=10.1.2.3/24,10.1.2.1").expect("right");
        assert_eq!(settings.echo, Some(7));
        let fixed = settings.fixed.expect("there is one");
        assert_eq!(fixed.address, Ipv4Addr::new(10, 1, 2, 3));
        assert_eq!(fixed.prefix, 24);
        assert_eq!(fixed.router, Some(Ipv4Addr::new(10, 1, 2, 1)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for word in [
            "echo",
            "echo=0",
            "echo=65536",
            "address=10.1.2.3",
            "address=10.1.2.3/33",
            "address=10.1.2.3/0",
            "address=0.0.0.0/8",
            "address=224.0.0.1/8",
            "address=10.1.2.3/24,",
            "address=10.1.2.3/24,255.255.255.255",
            "router=1",
        ] {
            let text = std::format!("echo=7 {word}");
            assert_eq!(Settings::parse(&text), Err(word));
        }
    }
}
