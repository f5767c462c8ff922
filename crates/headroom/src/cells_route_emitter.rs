//! The settings of a route emitter: flags, over the JSON file of Diego's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cells::route_emitter::registration::TcpMapping;
use cells::route_emitter::{Config, RoutingApi, RoutingApiError};
use document::Secret;
use nats::Password;
use nats::client::{ClientConfig, ServerAddress};
use net::tls::Files;
use routing_api::client::{ApiClient, ClientError, ClientSettings, TokenSettings};
use routing_api::model;
use serde::{Deserialize, Deserializer};

use crate::cells::files;
use crate::cells_settings::put;
use crate::cli::RouteEmitterArgs;
use crate::router::{nats_user, put_over};

const LISTEN: &str = "127.0.0.1:17011";
const BBS: &str = "http://127.0.0.1:8889";
const NATS: &str = "127.0.0.1:4222";
/// Time between two attempts to reach NATS again, at most; as the original.
const NATS_PAUSE: Duration = Duration::from_millis(500);

/// What is used of the file of route-emitter 26f4ea3. Its other keys are about things that are
/// not here (loggregator, the debug server) or need no setting.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OriginalFile {
    bbs_address: Option<String>,
    bbs_ca_cert_file: PathBuf,
    bbs_client_cert_file: PathBuf,
    bbs_client_key_file: PathBuf,
    cell_id: String,
    register_direct_instance_routes: bool,
    #[serde(deserialize_with = "go_duration")]
    communication_timeout: Option<Duration>,
    healthcheck_address: Option<String>,
    nats_addresses: String,
    nats_username: String,
    nats_password: String,
    nats_tls_enabled: bool,
    nats_ca_cert_file: PathBuf,
    nats_client_cert_file: PathBuf,
    nats_client_key_file: PathBuf,
    #[serde(deserialize_with = "go_duration")]
    sync_interval: Option<Duration>,
    #[serde(deserialize_with = "go_duration")]
    tcp_route_ttl: Option<Duration>,
    tcp_enable_tls: bool,
    oauth: OriginalOAuth,
    routing_api: OriginalApi,
    enable_tcp_emitter: bool,
    #[serde(deserialize_with = "go_duration")]
    unregistration_interval: Option<Duration>,
    unregistration_send_count: Option<u32>,
    enable_internal_emitter: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OriginalOAuth {
    uaa_url: String,
    client_name: String,
    client_secret: String,
    ca_certs: PathBuf,
    skip_cert_verify: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OriginalApi {
    url: String,
    port: u16,
    ca_cert_file: PathBuf,
    client_cert_file: PathBuf,
    client_key_file: PathBuf,
    auth_enabled: bool,
}

fn go_duration<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(input)?.filter(|text| !text.is_empty());
    text.map(|text| units::parse_duration(&text).map_err(serde::de::Error::custom))
        .transpose()
}

/// The settings that a command line asks for.
pub(crate) fn config(args: &RouteEmitterArgs) -> Result<Config> {
    let file = match &args.config {
        Some(path) => read(path).with_context(|| format!("read --config {}", path.display()))?,
        None => OriginalFile::default(),
    };
    let listen = file.healthcheck_address.as_deref().unwrap_or(LISTEN);
    let listen = match args.listen {
        Some(listen) => listen,
        None => listen
            .parse()
            .with_context(|| format!("healthcheck_address: {listen:?} is not IP:PORT"))?,
    };
    let bbs = args.bbs.clone().or_else(|| file.bbs_address.clone());
    let bbs = bbs.unwrap_or_else(|| BBS.to_owned());
    let mut config = Config::new(listen, bbs, nats(args, &file)?);
    config.bbs_tls = files(&args.tls).or_else(|| {
        file_tls(
            &file.bbs_client_cert_file,
            &file.bbs_client_key_file,
            &file.bbs_ca_cert_file,
        )
    });
    config.nats_tls = nats_tls(args, &file)?;
    config.cell_id = args.cell_id.clone().unwrap_or_else(|| file.cell_id.clone());
    let asked = args.sync_interval.or(file.sync_interval);
    put(&mut config.sync_interval, asked);
    let asked = file.communication_timeout;
    put(&mut config.communication_timeout, asked);
    let asked = args.unregistration_interval;
    let asked = asked.or(file.unregistration_interval);
    put(&mut config.unregistration_interval, asked);
    let asked = args.unregistration_send_count;
    let asked = asked.or(file.unregistration_send_count);
    put(&mut config.unregistration_send_count, asked);
    let asked = args.tcp_route_ttl.or(file.tcp_route_ttl);
    put(&mut config.tcp_route_ttl, asked);
    for (name, interval) in [
        ("sync interval", config.sync_interval),
        ("unregistration interval", config.unregistration_interval),
        ("communication timeout", config.communication_timeout),
    ] {
        ensure!(!interval.is_zero(), "the {name} must be above 0");
    }
    let ttl = config.tcp_route_ttl.as_secs();
    ensure!(
        (1..=65_535).contains(&ttl),
        "TCP routes live from 1s to 65535s, found {ttl}s"
    );
    config.table.direct_instance_routes =
        args.register_direct_instance_routes || file.register_direct_instance_routes;
    config.table.tcp_tls = args.tcp_tls || file.tcp_enable_tls;
    config.internal_routes = args.internal_routes || file.enable_internal_emitter;
    config.routing_api = routing_api(args, &file)?;
    config.standby = args.standby;
    ensure!(
        !config.standby || config.cell_id.is_empty(),
        "--standby is for one that tells of all cells; found the cell {:?}",
        config.cell_id
    );
    Ok(config)
}

fn read(path: &Path) -> Result<OriginalFile> {
    let text = std::fs::read_to_string(path)?;
    Ok(serde_json::from_str(&text)?)
}

fn file_tls(certificate: &Path, key: &Path, authority: &Path) -> Option<Files> {
    let named = [certificate, key, authority];
    let all = named.iter().all(|path| !path.as_os_str().is_empty());
    all.then(|| Files {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        authority: authority.to_owned(),
    })
}

fn nats(args: &RouteEmitterArgs, file: &OriginalFile) -> Result<ClientConfig> {
    let of_file = file.nats_addresses.split(',').map(str::trim);
    let of_file = of_file.filter(|address| !address.is_empty());
    let of_file: Vec<String> = of_file.map(str::to_owned).collect();
    let servers = match (args.nats.is_empty(), of_file.is_empty()) {
        (false, _) => args.nats.clone(),
        (true, false) => of_file,
        (true, true) => vec![NATS.to_owned()],
    };
    let mut config = ClientConfig {
        name: "route-emitter".to_owned(),
        longest_pause: NATS_PAUSE,
        ..ClientConfig::default()
    };
    for server in servers {
        config.servers.push(server.parse::<ServerAddress>()?);
    }
    config.user = nats_user(
        args.nats_user.as_deref(),
        args.nats_password_file.as_deref(),
    )?;
    if config.user.is_none() && !file.nats_username.is_empty() {
        let password = Password::new(&*file.nats_password);
        config.user = Some((file.nats_username.clone(), password));
    }
    Ok(config)
}

fn nats_tls(args: &RouteEmitterArgs, file: &OriginalFile) -> Result<Option<Files>> {
    let flags = args.nats_cert.as_ref().zip(args.nats_key.as_ref());
    if let Some(((certificate, key), authority)) = flags.zip(args.nats_ca.as_ref()) {
        return Ok(file_tls(certificate, key, authority));
    }
    if !file.nats_tls_enabled {
        return Ok(None);
    }
    let files = file_tls(
        &file.nats_client_cert_file,
        &file.nats_client_key_file,
        &file.nats_ca_cert_file,
    );
    ensure!(
        files.is_some(),
        "nats_tls_enabled needs nats_client_cert_file, nats_client_key_file and nats_ca_cert_file"
    );
    Ok(files)
}

fn routing_api(
    args: &RouteEmitterArgs,
    file: &OriginalFile,
) -> Result<Option<Arc<dyn RoutingApi>>> {
    let mut settings = match file.enable_tcp_emitter {
        true => Some(api_of(file)?),
        false => None,
    };
    if let Some(url) = &args.api {
        put_over(settings.get_or_insert_default(), url, &args.client)?;
    }
    let client = settings
        .map(|settings| ApiClient::new(&settings))
        .transpose()?;
    Ok(client.map(|client| Arc::new(Api(client)) as Arc<dyn RoutingApi>))
}

/// How the file says that the routing API is reached.
fn api_of(file: &OriginalFile) -> Result<ClientSettings> {
    let text = |path: &Path| match path.as_os_str().is_empty() {
        true => Ok(String::new()),
        false => std::fs::read_to_string(path).with_context(|| format!("read {}", path.display())),
    };
    let api = &file.routing_api;
    let mut settings = ClientSettings {
        url: format!("{}:{}", api.url, api.port),
        ..ClientSettings::default()
    };
    settings.tls.authorities = text(&api.ca_cert_file)?;
    settings.tls.certificate = text(&api.client_cert_file)?;
    settings.tls.key = Secret::from(text(&api.client_key_file)?);
    if api.auth_enabled {
        let oauth = &file.oauth;
        settings.tokens = Some(TokenSettings {
            url: oauth.uaa_url.clone(),
            client: oauth.client_name.clone(),
            secret: Secret::from(oauth.client_secret.clone()),
            authorities: text(&oauth.ca_certs)?,
            insecure: oauth.skip_cert_verify,
        });
    }
    Ok(settings)
}

/// The routing API, as a route emitter sees it.
struct Api(ApiClient);

impl RoutingApi for Api {
    fn upsert(
        &self,
        rows: Vec<TcpMapping>,
        ttl: Duration,
    ) -> net::BoxFuture<Result<(), RoutingApiError>> {
        let client = self.0.clone();
        let rows: Vec<_> = rows.into_iter().map(|row| mapping(row, ttl)).collect();
        net::boxed(async move { client.upsert(&rows).await.map_err(emitter_error) })
    }

    fn delete(&self, rows: Vec<TcpMapping>) -> net::BoxFuture<Result<(), RoutingApiError>> {
        let client = self.0.clone();
        let rows = rows.into_iter().map(|row| mapping(row, Duration::ZERO));
        let rows: Vec<_> = rows.collect();
        net::boxed(async move { client.delete(&rows).await.map_err(emitter_error) })
    }
}

fn mapping(row: TcpMapping, ttl: Duration) -> model::TcpMapping {
    model::TcpMapping {
        router_group_guid: row.router_group_guid,
        port: row.external_port,
        backend_ip: row.backend_ip,
        backend_port: row.backend_port,
        backend_tls_port: row.backend_tls_port.into(),
        instance_id: row.instance_id,
        backend_sni_hostname: row.backend_sni_hostname,
        ttl: i64::try_from(ttl.as_secs()).ok().filter(|ttl| *ttl > 0),
        ..model::TcpMapping::default()
    }
}

fn emitter_error(error: ClientError) -> RoutingApiError {
    match &error {
        // Sent again, rows that make no sense make none either.
        ClientError::Refused { status, .. } if status.as_u16() == 400 => {
            RoutingApiError::Refused(error.to_string())
        }
        _ => RoutingApiError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{CellsCommand, CellsPart, Cli, Command};

    fn config_of(arguments: &[&str]) -> Result<Config> {
        let words = ["headroom", "cells", "route-emitter"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).unwrap();
        let Command::Cells(part) = cli.command else {
            panic!("another command");
        };
        match *part {
            CellsCommand::Part(CellsPart::RouteEmitter(args)) => config(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_file_of_the_original_is_read_and_flags_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("route-emitter.json");
        let text = r#"{
            "bbs_address": "https://bbs.service.cf.internal:8889", "bbs_ca_cert_file": "/c/ca.crt",
            "bbs_client_cert_file": "/c/client.crt", "bbs_client_key_file": "/c/client.key",
            "cell_id": "cell-7", "communication_timeout": "30s", "healthcheck_address": "127.0.0.1:17012",
            "jitter_factor": 0.2, "nats_addresses": "10.0.0.1:4224, 10.0.0.2:4224", "nats_username": "nats",
            "nats_password": "secret", "nats_tls_enabled": true, "nats_ca_cert_file": "/n/ca.crt",
            "nats_client_cert_file": "/n/client.crt", "nats_client_key_file": "/n/client.key",
            "sync_interval": "1m0s", "tcp_route_ttl": "2m0s", "enable_tcp_emitter": true, "tcp_enable_tls": true,
            "register_direct_instance_routes": true, "enable_internal_emitter": true,
            "unregistration_interval": "20s", "unregistration_send_count": 5,
            "routing_api": {"url": "http://127.0.0.1", "port": 3000, "auth_enabled": true},
            "oauth": {"uaa_url": "https://uaa.example:8443", "client_name": "tcp_emitter", "client_secret": "hidden"},
            "loggregator": {"loggregator_use_v2_api": true}, "log_level": "info"
        }"#;
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let config = config_of(&["--config", file]).unwrap();
        assert_eq!(config.bbs, "https://bbs.service.cf.internal:8889");
        assert_eq!(config.cell_id, "cell-7");
        assert_eq!(config.listen.port(), 17012);
        let servers: Vec<_> = config
            .nats
            .servers
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(servers, ["10.0.0.1:4224", "10.0.0.2:4224"]);
        assert_eq!(config.nats.user.as_ref().unwrap().0, "nats");
        assert_eq!(
            config.bbs_tls.as_ref().unwrap().key,
            Path::new("/c/client.key")
        );
        assert_eq!(
            config.nats_tls.as_ref().unwrap().authority,
            Path::new("/n/ca.crt")
        );
        assert_eq!(config.sync_interval, Duration::from_secs(60));
        assert_eq!(config.unregistration_send_count, 5);
        assert!(config.table.direct_instance_routes && config.table.tcp_tls);
        assert!(config.internal_routes && config.routing_api.is_some() && !config.standby);
        let shown = format!("{config:?}");
        assert!(
            !shown.contains("secret") && !shown.contains("hidden"),
            "{shown}"
        );

        let flags = [
            "--config",
            file,
            "--cell-id",
            "other",
            "--nats",
            "[::1]:4222",
            "--sync-interval",
            "5s",
        ];
        let config = config_of(&flags).unwrap();
        assert_eq!(config.cell_id, "other");
        assert_eq!(config.nats.servers[0].to_string(), "[::1]:4222");
        assert_eq!(config.sync_interval, Duration::from_secs(5));
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (arguments, expected) in [
            (
                &["--sync-interval", "0"][..],
                "the sync interval must be above 0",
            ),
            (&["--nats", "nats://u:p@host"], "'@'"),
            (&["--tcp-route-ttl", "20h"], "TCP routes live"),
            (&["--config", "/nowhere"], "/nowhere"),
        ] {
            let error = format!("{:#}", config_of(arguments).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
