//! Which database, and how to reach it.

use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How to reach PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// Host, user, database; its `Debug` hides the password. TLS is spoken with
    /// `sslmode=require`, and only then.
    pub config: Config,
    /// PEM file with the authorities of the server's certificate; `None`: those of the
    /// public web.
    pub authority: Option<PathBuf>,
}

/// Why an address of PostgreSQL cannot be used. It repeats nothing of the address, as that may
/// hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It cannot be read.
    #[error("expected postgres://user@host:port/name?sslmode=require")]
    Unreadable,
    /// It has a password.
    #[error("a password does not belong into an address, which others can read; use a file")]
    Password,
}

impl PostgresSettings {
    /// The database at an address without a password, with the authorities of the public web.
    ///
    /// # Errors
    /// When the address cannot be read, names no host, or has a password.
    pub fn at(address: &str) -> Result<Self, AddressError> {
        let scheme = ["postgres://", "postgresql://"];
        if !scheme.iter().any(|scheme| address.starts_with(scheme)) {
            return Err(AddressError::Unreadable);
        }
        // The library's words may repeat a part of the address.
        let config: Config = address.parse().map_err(|_| AddressError::Unreadable)?;
        if config.get_password().is_some() {
            return Err(AddressError::Password);
        }
        if config.get_hosts().is_empty() {
            return Err(AddressError::Unreadable);
        }
        Ok(Self {
            config,
            authority: None,
        })
    }

    /// The database, as an error may name it.
    pub fn name(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(host) => host.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        // Without a name PostgreSQL takes the user's.
        let database = self.config.get_dbname().or(self.config.get_user());
        let database = database.unwrap_or_default();
        format!("{database} at {}", hosts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_host_and_no_password() {
        let found = PostgresSettings::at("postgres://app@db.example:5433/diego?sslmode=require");
        let found = found.unwrap();
        assert_eq!(found.name(), "diego at db.example");
        assert_eq!(found.config.get_ports(), [5433]);
        let found = PostgresSettings::at("postgres://app@db.example").unwrap();
        assert_eq!(found.name(), "app at db.example");
        for (wrong, error) in [
            ("postgres://app:hush@db/diego", AddressError::Password),
            ("postgres://app@db:x/diego", AddressError::Unreadable),
            ("postgres://", AddressError::Unreadable),
            ("mysql://app@db/diego", AddressError::Unreadable),
            ("diego.sqlite", AddressError::Unreadable),
        ] {
            let found = PostgresSettings::at(wrong).unwrap_err();
            assert_eq!(found, error, "{wrong}");
            assert!(!found.to_string().contains("hush"));
        }
    }
}
