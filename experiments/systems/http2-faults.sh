#!/bin/sh
# Certificates, routes and settings of experiments/router-http2-faults.toml.
#
# Usage: http2-faults.sh WORK ROUTER_ADDR STATUS_ADDR ROUTES_ADDR GOOD_PORT REFUSING_PORT MALFORMED_PORT
set -eu
work=$1
"$HEADROOM" cells certs --out "$work/tls" --name app.test
route() {
    printf '{"uris":["%s.test"],"host":"127.0.0.1","tls_port":%s,"server_cert_domain_san":"app.test","private_instance_id":"%s","protocol":"http2"}\n' "$1" "$2" "$1"
}
{
    route good "$5"
    route beside "$5"
    route refusing "$6"
    route malformed "$7"
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
chain = "$work/tls/cert.pem"
key = "$work/tls/key.pem"
[backends]
authorities = "$work/tls/ca.pem"
[access_log]
file = "$work/access.log"
[status]
listen = "$3"
routes_listen = "$4"
END
echo prepared
# Who is ready has to stay.
exec sleep 1000000
