#!/bin/sh
# Certificates, routes and settings of experiments/router-tls-faults.toml.
#
# Usage: tls-faults.sh WORK ROUTER_ADDR STATUS_ADDR ROUTES_ADDR GOOD_PORT EXPIRED_PORT FOREIGN_PORT SILENT_PORT
set -eu
work=$1
"$HEADROOM" cells certs --out "$work/good" --name app.test
"$HEADROOM" cells certs --out "$work/expired" --name app.test --expired
"$HEADROOM" cells certs --out "$work/foreign" --name app.test
# The router trusts whoever signed the first two.
cat "$work/good/ca.pem" "$work/expired/ca.pem" > "$work/authorities.pem"
route() {
    printf '{"uris":["%s.test"],"host":"127.0.0.1","tls_port":%s,"server_cert_domain_san":"app.test","private_instance_id":"%s"}\n' "$1" "$2" "$1-$2"
}
{
    route good "$5"
    route expired "$6"
    route foreign "$7"
    route silent "$8"
    # One of two backends is of no use.
    route mixed "$5"
    route mixed "$6"
} > "$work/routes.json"
cat > "$work/router.toml" <<END
listen = ""
listen_tls = "$2"
threads = 1
start_delay = "0s"
routes_file = "$work/routes.json"
[client_tls]
tls13 = true
[[client_tls.certificate]]
chain = "$work/good/cert.pem"
key = "$work/good/key.pem"
[limits]
head_timeout = "3s"
[backends]
authorities = "$work/authorities.pem"
handshake_timeout = "2s"
# Routes without a backend stay, and say 503 and not 404, for longer than the experiment takes.
[routes]
prune_interval = "10m"
[access_log]
file = "$work/access.log"
[status]
listen = "$3"
routes_listen = "$4"
END
echo prepared
# Who is ready has to stay.
exec sleep 1000000
